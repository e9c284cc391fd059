"""What rollout workers are given, and what is drawn again when a worker or a sample is lost; no process."""

from itertools import groupby
from operator import attrgetter
from types import SimpleNamespace

import numpy as np
import pytest

from async_rollout.runtime import assignments
from async_rollout.runtime.recorder import Totals
from async_rollout.runtime.replay import Replay
from async_rollout.runtime.supervisor import WorkerDied
from async_rollout.runtime.supply import Prompt, Supply
from async_rollout.types import Sample, SampleId, Verdict
from learning import run_config, trajectory

TIMEOUT = 100.0


class Stage:
    """Two workers with room for two groups of four each; `now` is the clock."""

    def __init__(self, monkeypatch, restarts: int = 2):
        self.run = run_config(
            k=4,
            rollout={"slots": 4, "sample_timeout_sec": TIMEOUT},
            supervision={"restarts": restarts},
        )
        self.now = 1000.0
        monkeypatch.setattr(assignments, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.sent: list[tuple[str, object]] = []
        self.killed: list[str] = []
        self.replay, self.totals, self.judging = Replay(), Totals(), {}
        supervisor = SimpleNamespace(
            send=lambda worker, message: self.sent.append((worker.role, message)),
            check_ready=lambda: None,
            replace=lambda worker: self.worker(worker.role, ready=False),
        )
        self.supply = Supply(
            self.run,
            lambda number: Prompt(f"task-{number}", np.zeros(1, np.int32)),
            supervisor,
            [self.worker("rollout-0"), self.worker("rollout-1")],
            self.replay,
            self.judging,
            self.totals,
            version=0,
        )

    def worker(self, role: str, ready: bool = True):
        return SimpleNamespace(
            role=role, ready=ready, process=SimpleNamespace(kill=lambda: self.killed.append(role))
        )

    def dispatch(self, groups: int, version: int = 0) -> list[tuple[str, list[SampleId]]]:
        """Each group's samples with their worker, one message each; so many are admitted at most."""
        self.sent.clear()
        limit = self.totals.submitted + groups
        self.supply.dispatch(version, lambda: self.totals.submitted < limit)
        assert len({role for role, _ in self.sent}) == len(self.sent)
        return [
            (role, list(samples))
            for role, m in self.sent
            for _, samples in groupby((r.id for r in m.requests), key=attrgetter("group"))
        ]

    def finish(self, role: str, *samples: SampleId) -> None:
        self.supply.assignments.heard(role, samples)
        for key in samples:
            drawn = trajectory(np.random.default_rng(0), key)
            self.replay.add(Sample(drawn, "", Verdict(1.0, "pass")))


@pytest.fixture
def stage(monkeypatch):
    return Stage(monkeypatch)


def ids(group: int, *samples: int, attempt: int = 0) -> list[SampleId]:
    return [SampleId(group, i, attempt) for i in samples]


def death(*roles: str) -> WorkerDied:
    return WorkerDied("killed", "killed", frozenset(roles))


def test_groups_go_to_the_emptiest_worker_that_is_ready(stage):
    assert [(role, s[0].group) for role, s in stage.dispatch(9)] == [
        ("rollout-0", 0), ("rollout-0", 2), ("rollout-1", 1), ("rollout-1", 3),
    ]  # fmt: skip
    stage.supply.workers[0].ready = False
    stage.finish("rollout-0", *ids(0, 0, 1, 2, 3))
    stage.finish("rollout-1", *ids(1, 0, 1, 2, 3))
    assert [(role, s[0].group) for role, s in stage.dispatch(9)] == [("rollout-1", 4)]


def test_what_a_dead_worker_had_is_drawn_again_before_anything_new(stage):
    """Its finished samples are kept; the others get streams of their own."""
    stage.dispatch(4)
    stage.finish("rollout-0", *ids(0, 1))
    stage.judging[SampleId(0, 2)] = ()
    stage.supply.assignments.heard("rollout-0", ids(0, 2))
    assert stage.supply.replace(stage.supply.workers[0], death("rollout-0"), 1) == []
    assert (stage.totals.restarts, stage.totals.redrawn_samples) == (1, 6)
    stage.supply.workers[0].ready = True
    assert stage.dispatch(1, version=1) == [
        ("rollout-0", ids(0, 0, 3, attempt=1)),
        ("rollout-0", ids(2, 0, 1, 2, 3, attempt=1)),
        ("rollout-0", ids(4, 0, 1, 2, 3)),
    ]
    assert not stage.replay.expects(SampleId(0, 0)), "a late copy of the first attempt"
    assert stage.replay.expects(SampleId(0, 0, 1))
    assert {m.admitted_at for _, m in stage.sent} == {1}
    assert (1, 2) in stage.replay.under_way(), "nothing of it is left: it is as young as its next start"


def test_a_group_that_is_gone_is_not_drawn_again(stage):
    stage.dispatch(4)
    stage.supply.replace(stage.supply.workers[0], death("rollout-0"), 0)
    stage.replay.reject(0)
    stage.supply.workers[0].ready = True
    assert stage.dispatch(0) == [("rollout-0", ids(2, 0, 1, 2, 3, attempt=1))]


def test_a_sample_that_is_lost_too_often_takes_its_group_with_it(monkeypatch):
    stage = Stage(monkeypatch, restarts=3)
    for attempt in range(2):
        assert [s for _, s in stage.dispatch(1 if not attempt else 0)] == [
            ids(0, 0, 1, 2, 3, attempt=attempt)
        ]
        assert stage.supply.replace(stage.supply.workers[0], death("rollout-0"), 0) == []
        stage.supply.workers[0].ready = True
    stage.dispatch(0)
    assert stage.supply.replace(stage.supply.workers[0], death("rollout-0"), 0) == [0]


@pytest.mark.parametrize(
    "dead",
    [
        WorkerDied("failed by itself", "error"),
        death("rollout-0", "trainer-0"),
    ],
)
def test_other_deaths_stop_the_run(stage, dead):
    """A worker's own error would come again; without a trainer there is nothing to go on for."""
    with pytest.raises(WorkerDied) as raised:
        stage.supply.replace(stage.supply.workers[0], dead, 0)
    assert raised.value is dead


def test_workers_are_replaced_a_few_times_only(stage):
    for _ in range(2):
        stage.supply.replace(stage.supply.workers[1], death("rollout-1"), 0)
    with pytest.raises(WorkerDied):
        stage.supply.replace(stage.supply.workers[1], death("rollout-1"), 0)


def test_a_sample_past_its_deadline_is_drawn_again(stage):
    """With what its group still lacks, which is cancelled everywhere first."""
    stage.dispatch(2)
    stage.now += TIMEOUT / 2
    stage.finish("rollout-0", *ids(0, 0, 2))
    stage.supply.assignments.heard("rollout-1")
    stage.now += TIMEOUT / 2 - 1
    stage.sent.clear()
    assert stage.supply.watch(0) == []
    assert stage.sent == []
    stage.now += 2
    stage.finish("rollout-1", *ids(1, 0, 1, 2, 3))
    assert stage.supply.watch(0) == []
    assert stage.killed == []
    assert {(role, m.groups) for role, m in stage.sent} == {
        (f"rollout-{i}", frozenset({0})) for i in range(2)
    }
    assert stage.supply.assignments.load("rollout-0") == 0
    assert [s for _, s in stage.dispatch(0)] == [ids(0, 1, 3, attempt=1)]


def test_after_so_many_attempts_nobody_waits_for_it(stage):
    for _ in range(3):
        stage.dispatch(1 if stage.totals.submitted == 0 else 0)
        stage.now += TIMEOUT + 1
        stage.supply.assignments.heard("rollout-0")
        stage.supply.assignments.heard("rollout-1")
        rejected = stage.supply.watch(0)
    assert rejected == [0]
    assert stage.totals.redrawn_samples == 8


def test_a_worker_that_hangs_is_killed(stage):
    """It has said nothing since it was given what is late; its death is what follows."""
    stage.dispatch(2)
    stage.now += TIMEOUT + 1
    stage.supply.assignments.heard("rollout-1", ids(1, 0, 1, 2, 3))
    stage.sent.clear()
    assert stage.supply.watch(0) == []
    assert (stage.killed, stage.sent) == (["rollout-0"], [])
    assert isinstance(stage.supply.replace(stage.supply.workers[0], death("rollout-0"), 0), list)
    assert [s for _, s in stage.dispatch(0)] == [ids(0, 0, 1, 2, 3, attempt=1)]


def test_nothing_is_given_to_a_worker_that_is_not_ready(stage):
    for worker in stage.supply.workers:
        worker.ready = False
    assert stage.dispatch(9) == []
