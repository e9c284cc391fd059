"""What the monitor warns of, and that it keeps quiet otherwise."""

import shutil
from collections import namedtuple

import pytest

from async_rollout.monitor import health
from async_rollout.monitor.watcher import Watcher
from monitored import BEGUN, commit, enter, finish, start, touch
from summaries import a_cell


def findings(results, now=BEGUN + 1):
    watcher = Watcher(results)
    watcher.scan(now)
    (card,) = watcher.listing().cells
    return {finding.kind: finding for finding in card.findings}


@pytest.fixture
def begin(tmp_path):
    def begin(updates=60, **axes):
        directory = start(tmp_path, a_cell(**axes), updates=updates)
        enter(directory, "running")
        return directory

    return begin


def test_a_sound_cell_has_no_finding(begin, tmp_path):
    commit(begin(), *range(1, 31))
    assert findings(tmp_path) == {}


def test_many_dropped_tokens(begin, tmp_path):
    directory = begin()
    commit(directory, 1, 2, 3, dropped={"stale": 300})  # of 1300 trained each: 300/1600 = 19 %
    assert findings(tmp_path) == {}
    commit(directory, 4, 5, 6, dropped={"stale": 600, "late": 100})
    found = findings(tmp_path)
    assert found.keys() == {"drop_rate_high"}
    assert "28%" in found["drop_rate_high"].text
    assert "stale 2,700" in found["drop_rate_high"].text


def test_a_k_that_no_token_ever_felt(begin, tmp_path):
    directory = begin(k=4)
    fresh = {"staleness": {"0": 1300}, "staleness_mean": 0.0, "staleness_max": 0}
    commit(directory, *range(1, 20), **fresh)
    assert findings(tmp_path) == {}
    commit(directory, 20, **fresh)  # 4 (K + 1) updates
    assert findings(tmp_path).keys() == {"axis_inert"}
    commit(directory, 21)
    assert findings(tmp_path) == {}


def test_a_k_that_cannot_bind(begin, tmp_path):
    commit(begin(k=8, updates=35), 1)
    assert findings(tmp_path)["cannot_bind"].level == "note"


def test_a_k_that_was_broken(begin, tmp_path):
    commit(begin(k=1), 1, staleness_max=2)
    assert findings(tmp_path)["above_k"].level == "error"


def test_no_bound_is_never_broken(begin, tmp_path):
    commit(begin(k="inf"), 1, staleness_max=90)
    assert findings(tmp_path) == {}


def test_answers_that_nobody_could_judge(begin, tmp_path):
    commit(begin(), 1, 2, dropped={"infrastructure": 20})
    assert findings(tmp_path).keys() == {"reward_failing"}


def test_damaged_rows(begin, tmp_path):
    directory = begin()
    commit(directory, 1)
    with (directory / "metrics.jsonl").open("a") as file:
        file.write('{"version": 2}\n{"version": NaN, "kl": "x"}\nnot json\n')
    commit(directory, 3)
    assert findings(tmp_path)["damaged_rows"].text.startswith("3 ")


def test_a_finished_cell_is_judged_by_its_summary(tmp_path):
    cell = a_cell()
    directory = start(tmp_path, cell)
    finish(directory, cell, infrastructure_failures=3, staleness_max=6)
    assert findings(tmp_path).keys() == {"reward_failing", "above_k"}


def test_errors_come_first(begin, tmp_path):
    directory = begin(k=1)
    commit(directory, 1, 2, 3, staleness_max=2, dropped={"infrastructure": 1})
    touch(directory, BEGUN)
    watcher = Watcher(tmp_path)
    watcher.scan(BEGUN + 1000)
    levels = [finding.level for finding in watcher.listing().cells[0].findings]
    assert levels == ["error", "error", "warning"]


@pytest.mark.parametrize(("free", "warned"), [(100, True), (900 << 20, True), (2 << 30, False)])
def test_a_disk_that_is_nearly_full(tmp_path, monkeypatch, free, warned):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(health.shutil, "disk_usage", lambda path: usage(1 << 40, 0, free))
    assert [f.kind for f in health.disk_findings(tmp_path)] == ["disk_nearly_full"] * warned


def test_a_small_disk_is_full_by_its_share(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1 << 30, 0, 100 << 20))
    assert health.disk_findings(tmp_path) == []


def test_a_results_directory_that_went_away(tmp_path):
    watcher = Watcher(tmp_path / "gone")
    watcher.scan()
    assert [f.kind for f in watcher.listing().sweep.findings] == ["results_unreadable"]
