"""The controller's handling of what arrives twice, late or unjudged, without any process."""

import hashlib
import math
import pickle
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from async_rollout.runtime import checkpoint
from async_rollout.runtime import messages as say
from async_rollout.runtime.controller import Controller
from async_rollout.runtime.keeper import Keeper
from async_rollout.runtime.recorder import Recorder
from async_rollout.runtime.stopping import Stopping
from async_rollout.runtime.supply import Prompt
from async_rollout.types import SampleId, Verdict
from learning import run_config, trajectory

PASS = Verdict(1.0, "pass")
FAILED = Verdict(math.nan, "infrastructure", infrastructure=True)


class Stage:
    """A controller whose worker, trainer and judges are lists."""

    def __init__(self, out, order="deadline", keeper=None, version=0, rollout=None):
        self.run = run_config(  # B = 2, G = 4
            k=4,
            train={"updates": 20},
            staleness={"order": order},
            rollout=rollout or {},
            checkpoint={"every": 5},
        )
        self.clock = SimpleNamespace(version=version)
        self.sent, self.judging = [], []
        before = keeper.state if keeper else None
        self.recorder = Recorder(out, {f"task-{n}": "?" for n in range(5)}, before)
        rollout = SimpleNamespace(role="rollout-0", ready=True)
        self.controller = Controller(
            self.run,
            [Prompt(f"task-{n}", np.zeros(1, np.int32)) for n in range(5)],
            SimpleNamespace(send=lambda worker, message: self.sent.append(message)),
            [rollout],
            SimpleNamespace(role="trainer-0"),
            self.clock,
            SimpleNamespace(submit=lambda key, task_id, text: self.judging.append(key)),
            self.recorder,
            SimpleNamespace(commit=lambda row: None),
            SimpleNamespace(cpu_seconds=dict),
            keeper or Keeper(out, self.run.checkpoint, Stopping(1.0)),
            SimpleNamespace(version=None, due=lambda version: False),
            SimpleNamespace(wait=nullcontext),
        )
        self.worker = rollout
        self.dispatch()

    def dispatch(self) -> None:
        self.controller._supply.dispatch(self.controller._version, self.controller._may_submit)

    def load(self) -> int:
        return self.controller._supply.assignments.load("rollout-0")

    def finish(self, group: int, sample: int, version: int = 0) -> SampleId:
        key = SampleId(group, sample)
        drawn = trajectory(np.random.default_rng(0), key, versions=(version, version))
        self.controller._hear(self.worker, say.Finished(((drawn, "text"),)))
        return key

    def complete(self, group: int) -> None:
        for sample in range(4):
            self.controller._judged(self.finish(group, sample), PASS)


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path)
    yield stage
    stage.recorder.close()


def test_work_is_sent_in_whole_groups_and_no_more_than_there_is_room_for(stage):
    """Slots for two samples of eight at least G = 4, and one group ahead: two groups."""
    (work,) = stage.sent
    assert [r.id for r in work.requests] == [SampleId(group, i) for group in range(2) for i in range(4)]
    stage.complete(0)
    stage.dispatch()
    _, work = stage.sent
    assert [r.id for r in work.requests] == [SampleId(2, i) for i in range(4)]


def test_a_copy_that_comes_while_the_first_is_judged_is_late(stage):
    key = stage.finish(0, 0)
    stage.finish(0, 0)
    assert stage.judging == [key]
    stage.controller._judged(key, PASS)
    stage.finish(0, 0)
    assert stage.recorder.totals.samples == {"generated": 3, "late": 2}


def test_an_unjudged_answer_rejects_its_group_whole(stage):
    """Its judged samples too; what still comes is late; its place is free for another group."""
    stage.controller._judged(stage.finish(0, 0), PASS)
    in_judging = stage.finish(0, 1)
    stage.controller._judged(stage.finish(0, 2), FAILED)
    totals = stage.recorder.totals
    assert totals.groups == {"infrastructure": 1}
    assert totals.samples["infrastructure"] == 2
    stage.controller._judged(in_judging, FAILED)
    stage.finish(0, 3)
    assert totals.samples["late"] == 2
    assert totals.infrastructure_failures == 2
    assert totals.groups == {"infrastructure": 1}


def test_a_batch_is_handed_over_once_and_counted_at_its_commit(stage):
    stage.complete(0)
    stage.complete(1)
    stage.sent.clear()
    stage.controller._hear(None, say.BatchRequest(0))
    stage.controller._hand_over()
    stage.controller._hand_over()
    (batch,) = stage.sent
    assert [g.number for g in batch.groups] == [0, 1]
    assert stage.recorder.totals.groups == {}, "a lease is no commit"


def test_a_group_that_is_rejected_counts_its_age_by_the_clock(stage):
    """Its tokens may be newer than the last commit that the controller has heard of."""
    stage.clock.version = 3
    stage.controller._judged(stage.finish(0, 0, version=3), FAILED)
    assert set(stage.recorder.totals.ages["dropped"]) == {0}


def test_a_running_group_that_has_become_too_old_is_cancelled(tmp_path):
    """Its samples so far are dropped, its place is free, and what the worker gives back is counted."""
    stage = Stage(tmp_path, "completed")
    controller, totals = stage.controller, stage.recorder.totals
    stage.controller._judged(stage.finish(0, 0), PASS)
    controller._hear(stage.worker, say.Finished((), started=((0, 0), (1, 3))))
    stage.clock.version = 5
    controller._drop_stale(4)
    assert not totals.groups, "K = 4"
    controller._drop_stale(5)
    assert totals.groups == {"stale": 1}
    assert stage.sent[-1] == say.Cancel(frozenset({0}))
    assert stage.load() == 7, "the worker holds its samples still"
    part = trajectory(np.random.default_rng(0), SampleId(0, 1), versions=(0, 1))
    controller._hear(stage.worker, say.Cancelled(tuple(SampleId(0, i) for i in (1, 2, 3)), ((part, "te"),)))
    assert stage.load() == 4
    assert totals.samples == {"generated": 2, "stale": 1, "cancelled": 1}
    assert totals.tokens["generated"] == totals.tokens["stale"] + totals.tokens["cancelled"]
    stage.recorder.close()


def test_a_run_goes_on_with_what_it_had_and_admits_no_burst(tmp_path):
    """At version 5 with K = 4 and B = 2, 10 groups may be under way: 3 are restored, so 7 are new."""
    before = Stage(tmp_path)
    for group in range(2):
        before.complete(group)
    before.dispatch()
    before.controller._judged(before.finish(2, 0), PASS)
    in_judging = before.finish(2, 1)
    totals = before.recorder.totals
    totals.submitted, totals.groups["trained"] = 10 + 4, 10  # as if versions 0 to 4 had been trained
    work = (before.controller._replay, before.controller._judging)
    state = pickle.loads(pickle.dumps(before.recorder.state(5, {}, work)))
    before.recorder.close()

    keeper = Keeper(tmp_path, before.run.checkpoint, Stopping(1.0), tmp_path, state)
    after = Stage(tmp_path, keeper=keeper, version=5, rollout={"slots": 1000})
    assert after.judging == [in_judging], "an answer without a verdict is judged, not drawn again"
    (work,) = after.sent
    running = [SampleId(2, 2), SampleId(2, 3), *(SampleId(3, i) for i in range(4))]
    new = [SampleId(group, i) for group in range(14, 20) for i in range(4)]
    assert [r.id for r in work.requests] == running + new, "what was running goes first"
    assert after.recorder.totals.submitted - 10 == 10
    assert work.admitted_at == 5
    after.controller._judged(in_judging, PASS)
    for sample in (2, 3):
        after.controller._judged(after.finish(2, sample, version=5), PASS)
    assert after.controller._replay.waiting == 3
    assert not after.controller._keeper.wanted(5), "it is kept already"
    after.recorder.close()


def test_a_checkpoint_takes_the_place_of_a_batch(tmp_path):
    """The trainer writes what it has; the controller's state is that of the answer's moment."""
    stage = Stage(tmp_path)
    stage.clock.version = stage.controller._version = 10
    for group in range(2):
        for sample in range(4):
            stage.controller._judged(stage.finish(group, sample, version=10), PASS)
    stage.sent.clear()
    stage.controller._hear(None, say.BatchRequest(10))
    stage.controller._hand_over()
    stage.controller._hand_over()
    (keep,) = stage.sent
    assert isinstance(keep, say.Keep)
    (Path(keep.place) / checkpoint.TRAINING).write_bytes(b"weights")
    stage.controller._hear(None, say.Kept(10, {checkpoint.TRAINING: hashlib.sha256(b"weights").hexdigest()}))
    (place,) = checkpoint.checkpoints(tmp_path)
    assert checkpoint.damage(place) is None
    replay, _ = checkpoint.read_state(place).work
    assert replay.waiting == 2
    stage.controller._hear(None, say.BatchRequest(10))
    stage.controller._hand_over()
    assert isinstance(stage.sent[-1], say.Batch), "each version is kept once"
    stage.recorder.close()


def test_every_waiting_group_may_be_stale(tmp_path):
    """All are dropped, and others are admitted in their place."""
    stage = Stage(tmp_path, "completed")
    for group in range(2):
        stage.complete(group)
    stage.clock.version = stage.controller._version = 7
    stage.controller._hear(None, say.BatchRequest(7))
    stage.controller._hand_over()
    assert stage.recorder.totals.groups == {"stale": 2}
    stage.dispatch()
    assert stage.sent[-1].admitted_at == 7
    assert {request.id.group for request in stage.sent[-1].requests} == {2, 3}
    stage.recorder.close()
