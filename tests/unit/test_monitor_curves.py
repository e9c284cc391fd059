"""A history of any length in bounded memory, whose points are means of the commits."""

import pytest

from async_rollout.monitor.curves import AXES, LIMIT, MEASURES, Curves


def filled(commits, curves=None):
    curves = curves or Curves()
    for v in range(1, commits + 1):
        curves.add(dict.fromkeys(AXES, v), dict.fromkeys(MEASURES, v / 10))
    return curves


def test_short_histories_are_kept_as_they_are():
    points = filled(5).after(-1)
    assert points["version"] == [1, 2, 3, 4, 5]
    assert points["kl"] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])


def test_points_are_means_that_end_at_their_last_commit():
    curves = filled(LIMIT * 3)
    points = curves.after(-1)
    assert curves.stride == 4
    assert len(points["version"]) < LIMIT
    assert points["version"][:2] == [4, 8]
    assert points["reward"][0] == pytest.approx((0.1 + 0.2 + 0.3 + 0.4) / 4, rel=1e-5)
    assert points["reward"][-1] == pytest.approx(sum(range(1197, 1201)) / 40, rel=1e-5)


def test_a_million_commits_fit():
    curves = filled(20_000)
    assert all(len(column) < LIMIT for column in curves.columns.values())


def test_after_a_version_come_only_newer_points():
    curves = filled(10)
    assert curves.after(7)["version"] == [8, 9, 10]
    assert curves.after(10)["version"] == []


def test_an_epoch_ends_when_points_change():
    curves = filled(LIMIT - 1)
    before = curves.epoch
    filled(1, curves)
    assert curves.epoch != before
    before = curves.epoch
    curves.clear()
    assert curves.epoch != before
    assert curves.after(-1)["version"] == []
