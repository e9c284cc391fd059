"""Admission and order of hand-over, by hand-worked examples."""

import pytest

from async_rollout.runtime.staleness import Bounds, choose, may_submit, too_old

INF = float("inf")


@pytest.mark.parametrize(
    ("under_way", "version", "staleness", "allowed"),
    [
        (7, 0, 0, True),  # K = 0: one batch of 8
        (8, 0, 0, False),
        (8, 1, 0, True),  # trained groups count too, so the second batch starts at 8
        (15, 1, 0, True),
        (16, 1, 0, False),
        (23, 0, 2, True),  # K = 2: three batches
        (24, 0, 2, False),
        (79, 3, INF, True),  # no bound but the run's end: 10 updates of 8
        (80, 3, INF, False),
        (79, 9, 4, True),  # near the end the bound on updates is the smaller one
        (80, 9, 4, False),
    ],
)
def test_admission(under_way, version, staleness, allowed):
    assert may_submit(under_way, version, Bounds(8, staleness, 10)) is allowed


def test_after_a_resume_there_is_no_burst():
    """At v = 10 with 80 groups trained, K = 2: at most 24 start before the next commit."""
    bounds = Bounds(8, 2, 100)
    assert sum(may_submit(80 + n, 10, bounds) for n in range(100)) == 24


def test_too_old_is_more_than_k_versions():
    assert not too_old(3, 5, Bounds(8, 2, 100))
    assert too_old(2, 5, Bounds(8, 2, 100))
    assert not too_old(0, 10**6, Bounds(8, INF, 100))


@pytest.mark.parametrize(
    ("complete", "running", "version", "staleness", "chosen"),
    [
        ([(0, 1)], [], 0, 4, None),  # not a batch yet
        ([(0, 1), (0, 0), (0, 2)], [], 0, 4, [0, 1]),  # equally old: the first submitted
        ([(1, 8), (0, 9), (1, 3)], [], 1, 4, [9, 3]),  # the oldest first
        ([(1, 4), (1, 5)], [0], 1, 1, None),  # a group of version 0 runs and must be in this batch
        ([(1, 4), (1, 5)], [0], 1, 2, [4, 5]),  # with K = 2 it can be in the next
        ([(1, 4), (1, 5)], [0, 0, 0], 1, 2, None),  # but three of them cannot
        ([(1, 4), (1, 5)], [0, 0], 1, 2, [4, 5]),
        ([(1, 4), (1, 5)], [0, 0, 1, 1], 1, 2, [4, 5]),  # two in the next, two in the one after
        ([(1, 4), (1, 5)], [0, 0, 1, 1, 1], 1, 2, None),
        ([(1, 4), (1, 5)], [0] * 100, 1, INF, [4, 5]),
    ],
)
def test_hand_over(complete, running, version, staleness, chosen):
    """B = 2."""
    under_way = [(oldest, 100 + i) for i, oldest in enumerate(running)]
    assert choose(complete, under_way, version, Bounds(2, staleness, 100), "deadline") == chosen


@pytest.mark.parametrize(
    ("order", "complete", "running", "chosen"),
    [
        ("completed", [(1, 4)], [], None),  # not a batch yet
        ("completed", [(1, 4), (1, 5)], [(0, 1), (0, 2), (0, 3)], [4, 5]),  # whatever becomes of the others
        ("completed", [(1, 4), (0, 6), (1, 5)], [], [6, 4]),
        ("strict", [(1, 4)], [], None),
        ("strict", [(1, 4), (0, 6), (1, 5)], [(0, 7)], [4, 5]),  # by number, not by age
        ("strict", [(1, 4), (1, 6)], [(0, 5)], None),  # 5 goes before 6
        ("strict", [(1, 4), (1, 6)], [(0, 7)], [4, 6]),  # 5 was rejected
        ("strict", [(1, 4), (1, 6)], [(0, 3)], None),
    ],
)
def test_other_orders(order, complete, running, chosen):
    """B = 2, K = 1, at version 1."""
    assert choose(complete, running, 1, Bounds(2, 1, 100), order) == chosen
