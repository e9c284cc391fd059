"""Invariant 1: no trained token is older than K versions, whatever the schedule, and nothing hangs."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from async_rollout.config.rollout import Order
from async_rollout.runtime.replay import Replay
from async_rollout.runtime.staleness import Bounds, choose, may_submit, too_old
from async_rollout.types import Sample, SampleId, Trajectory, Verdict


class Schedule:
    """A run without processes: who does what next is drawn by chance, within the rules of the runtime."""

    def __init__(
        self, bounds: Bounds, order: Order, group_size: int, capacity: int, rejected: float, seed: int
    ):
        self.bounds = bounds
        self.order = order
        self.size = group_size
        self.capacity = capacity  # groups that the workers hold at once
        self.rejected = rejected  # share of samples that nobody can judge
        self.chance = random.Random(seed)
        self.replay = Replay()
        self.version = 0
        self.submitted = self.lost = self.dropped = self.trained = 0
        self.missing: dict[int, list[int]] = {}  # group → samples that are not judged
        self.admitted: dict[int, int] = {}  # group that waits at its worker → version of admission
        self.oldest: dict[int, int] = {}  # group that has begun → its oldest token
        self.unreported: list[int] = []  # begun, but the controller does not know it
        self.batch: list[int] | None = None  # what the trainer works on

    def run(self) -> None:
        while self.version < self.bounds.updates:
            moves = [self.commit] if self.batch is not None else [self.hand_over]
            moves += [self.submit] * self.can_submit() + [self.begin] * bool(self.admitted)
            moves += [self.finish] * 2 * bool(self.oldest) + [self.report] * bool(self.unreported)
            if not self.chance.choice(moves)():
                self.check_that_it_goes_on()

    def can_submit(self) -> bool:
        room = len(self.missing) < self.capacity
        return room and may_submit(self.submitted - self.lost - self.dropped, self.version, self.bounds)

    def submit(self) -> bool:
        number, self.submitted = self.submitted, self.submitted + 1
        self.replay.open(number, f"task-{number}", self.size, self.version)
        self.missing[number] = self.chance.sample(range(self.size), self.size)
        self.admitted[number] = self.version
        return True

    def begin(self) -> bool:
        """A worker gives the group's first sample a slot, under weights no older than its admission."""
        number = next(iter(self.admitted))
        self.oldest[number] = self.chance.randint(self.admitted.pop(number), self.version)
        self.unreported.append(number)
        return True

    def report(self) -> bool:
        for number in self.unreported:
            self.replay.start(number, self.oldest.get(number, 0))
        self.unreported = []
        return True

    def finish(self) -> bool:
        begun = list(self.oldest)
        number = self.chance.choice([begun[-1], self.chance.choice(begun)])  # so that some are slow
        index = self.missing[number].pop()
        if self.chance.random() < self.rejected:
            self.replay.reject(number)
            self.lost += 1
            self.forget(number)
            return True
        self.replay.add(self.sample(number, index))
        if not self.missing[number]:
            self.forget(number)
        return True

    def forget(self, number: int) -> None:
        del self.missing[number], self.oldest[number]

    def sample(self, number: int, index: int) -> Sample:
        """Begun at any version since admission and, interrupted or not, finished now."""
        versions = sorted(self.chance.randint(self.oldest[number], self.version) for _ in range(3))
        trajectory = Trajectory(
            SampleId(number, index),
            np.zeros(1, np.int32),
            np.zeros(3, np.int32),
            np.zeros(3, np.float32),
            np.array(versions, np.int32),
            np.ones(3, bool),
            "stop",
        )
        return Sample(trajectory, "", Verdict(1.0, "pass"))

    def hand_over(self) -> bool:
        complete = self.drop_stale()
        numbers = choose(complete, self.replay.under_way(), self.version, self.bounds, self.order)
        if numbers is None:
            return False
        assert len(numbers) == self.bounds.groups
        for group in self.replay.take(numbers):
            for s in group.samples:
                ages = self.version - s.trajectory.versions
                assert ages.min() >= 0
                assert ages.max() <= self.bounds.staleness
        self.batch = numbers
        return True

    def commit(self) -> bool:
        self.trained += len(self.batch)
        self.batch = None
        self.version += 1
        self.drop_stale()
        return True

    def drop_stale(self) -> list[tuple[int, int]]:
        """As the controller does, complete groups and running ones; returns the complete ones that stay."""
        stale, running = (
            [number for oldest, number in groups if too_old(oldest, self.version, self.bounds)]
            for groups in (self.replay.complete(), self.replay.begun())
        )
        assert self.order == "completed" or not stale + running, "dropped where nothing need be"
        self.replay.take(stale)
        for number in running:
            self.replay.reject(number)
            self.forget(number)
        self.dropped += len(stale + running)
        return self.replay.complete()

    def check_that_it_goes_on(self) -> None:
        """Nothing to hand over: then something can still be submitted or finished."""
        assert self.can_submit() or self.missing, "deadlock"


@given(
    order=st.sampled_from(["deadline", "completed", "strict"]),
    groups=st.integers(1, 4),
    staleness=st.sampled_from([0, 1, 2, 3, 4, float("inf")]),
    updates=st.integers(1, 12),
    group_size=st.integers(1, 3),
    capacity=st.integers(1, 12),
    rejected=st.sampled_from([0.0, 0.0, 0.1, 0.4]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=600)
def test_any_schedule(order, groups, staleness, updates, group_size, capacity, rejected, seed):
    """Nothing older than K is handed over, only `completed` drops, it never hangs and nothing is left.

    Capacities below B · G and a G above the capacity are among them.
    """
    run = Schedule(Bounds(groups, staleness, updates), order, group_size, capacity, rejected, seed)
    run.run()
    assert run.trained == updates * groups
    assert run.submitted == run.trained + run.lost + run.dropped


def test_the_order_completed_does_drop():
    """Else the schedules above show nothing about it."""
    runs = [Schedule(Bounds(4, 1, 12), "completed", 2, 12, 0.0, seed) for seed in range(20)]
    for run in runs:
        run.run()
    assert sum(run.dropped for run in runs) > 20
    assert (run.replay.running, run.replay.waiting) == (0, 0)


def test_no_row_of_a_real_run_is_too_old(areal_cell):
    """By the files of a run with more than one rollout worker."""
    trained = [row for row in areal_cell.rows("results.jsonl") if row["dropped"] is None]
    assert len(trained) == 30 * 4 * 4
    for row in trained:
        ages = [row["trained_at"] - version for version, _ in row["versions"]]
        assert row["staleness"] == max(ages) <= areal_cell.config.k
        assert min(ages) >= 0
    ages = Counter()
    for row in trained:
        for version, tokens in row["versions"]:
            ages[str(row["trained_at"] - version)] += tokens
    assert areal_cell.summary["staleness_histogram"]["trained"] == ages
    assert max(map(int, ages)) >= 1, "the bound was never put to the test"


def test_at_k0_a_group_waits_for_the_commit():
    """What decides at K = 0: B groups may start, then nothing until the version moves."""
    bounds = Bounds(groups=4, staleness=0, updates=10)
    assert [may_submit(n, 0, bounds) for n in range(6)] == [True] * 4 + [False] * 2
    assert may_submit(4, 1, bounds)


@pytest.mark.parametrize("order", [1, -1])
def test_the_oldest_groups_go_first(order):
    complete = [(2, 9), (0, 5), (1, 7), (0, 3)][::order]
    assert choose(complete, [], 2, Bounds(2, 4, 100), "deadline") == [3, 5]
