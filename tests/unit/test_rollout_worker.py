"""When a rollout worker reloads, what it starts, and what it says; weights and processes are stand-ins."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from async_rollout.policy.answer_engine import AnswerEngine
from async_rollout.policy.interface import Recompute
from async_rollout.runtime import messages as say
from async_rollout.runtime.rollout_worker import RolloutWorker
from async_rollout.types import SampleId, SampleRequest
from learning import run_config


class Worker(RolloutWorker):
    """Samples of a length that their prompt gives; every message is kept, the newest version can be set."""

    def __init__(self, slots: int = 4, **rollout):
        self.store = SimpleNamespace(version=0, forget=lambda _: None, read=lambda *_: self.store.version)
        self.sent: list = []
        channel = SimpleNamespace(send=self.sent.append, unsent=False)
        codec = SimpleNamespace(decode=str)
        policy = SimpleNamespace(
            codec=codec, engine=self.build, parameters=lambda: {"w": torch.nn.Parameter(torch.zeros(1))}
        )
        events = SimpleNamespace(add=lambda *_, **__: None)
        config = run_config(rollout={"slots": slots, "min_decode_steps": 2} | rollout)
        super().__init__(0, channel, self.store, config, policy, events)

    def build(self, **arguments) -> AnswerEngine:
        self.engine = AnswerEngine(
            lambda request, noise: (np.full(request.prompt_ids[0], 9, np.int32), 0.0), **arguments
        )
        return self.engine

    def add(self, group: int, *lengths: int, admitted: int = 0) -> None:
        self.accept(
            say.Work(
                admitted,
                tuple(
                    SampleRequest(SampleId(group, i), np.array([n], np.int32), n)
                    for i, n in enumerate(lengths)
                ),
            )
        )

    def steps(self, n: int) -> None:
        for _ in range(n):
            self.advance()

    def heard(self, kind: type) -> list:
        return [m for m in self.sent if isinstance(m, kind)]

    def versions(self) -> dict[SampleId, list[int]]:
        return {t.id: t.versions.tolist() for m in self.heard(say.Finished) for t, _ in m.samples}


def test_running_samples_go_on_under_newer_weights():
    worker = Worker()
    worker.add(0, 5, 5)
    worker.steps(3)
    worker.store.version = 1
    worker.steps(2)
    assert worker.versions() == {SampleId(0, 0): [0, 0, 0, 1, 1], SampleId(0, 1): [0, 0, 0, 1, 1]}
    (reloaded,) = worker.heard(say.Reloaded)
    assert (reloaded.version, reloaded.resumed_samples) == (1, 2)


def test_some_steps_lie_between_two_interruptions():
    worker = Worker(min_decode_steps=3)
    worker.add(0, 7)
    for version in range(7):
        worker.store.version = version
        worker.advance()
    assert worker.versions()[SampleId(0, 0)] == [0, 0, 0, 3, 3, 3, 6]


def test_work_admitted_since_is_started_under_new_weights_only():
    """It interrupts what runs, though the steps between two interruptions are not over."""
    worker = Worker(min_decode_steps=100)
    worker.add(0, 4)
    worker.steps(1)
    worker.store.version = 2
    worker.add(1, 2, admitted=2)
    worker.steps(3)
    assert worker.versions() == {SampleId(0, 0): [0, 2, 2, 2], SampleId(1, 0): [2, 2]}


def test_drain_refills_no_slot_before_the_new_weights():
    worker = Worker(update="drain")
    worker.add(0, 6, 3)
    worker.steps(1)
    worker.store.version = 1
    worker.add(1, 2)
    worker.steps(7)
    assert worker.versions() == {SampleId(0, 0): [0] * 6, SampleId(0, 1): [0] * 3, SampleId(1, 0): [1, 1]}
    (reloaded,) = worker.heard(say.Reloaded)
    assert reloaded.resumed_samples == 0, "nothing was interrupted"


@pytest.mark.parametrize(("update", "kept"), [("interrupt", False), ("keep_kv", True)])
def test_the_cache_is_kept_only_if_asked(update, kept, monkeypatch):
    worker, said = Worker(update=update), []
    monkeypatch.setattr(
        worker.engine,
        "weights_changed",
        lambda version, keep_cache: said.append(keep_cache) or Recompute(0, 0, 0.0),
    )
    worker.add(0, 5)
    worker.steps(3)
    worker.store.version = 1
    worker.steps(1)
    assert said == [kept]


def test_reloading_keeps_to_its_share_of_the_time(monkeypatch):
    """A reload takes 1 s, a step nothing: at a share of 0.1 the next is 9 s away, new work or not."""
    now = [100.0]
    monkeypatch.setattr("async_rollout.runtime.rollout_worker.time.monotonic", lambda: now[0])
    worker = Worker(min_decode_steps=1, max_recompute_share=0.1)

    def read(*_):
        now[0] += 1
        return worker.store.version

    worker._store.read = read
    worker.add(0, 50)
    worker.steps(1)
    worker.store.version = 1
    worker.steps(1)
    assert worker.engine.version == 1
    worker.store.version = 2
    worker.add(1, 1, admitted=2)
    now[0] += 8.9
    worker.steps(1)
    assert worker.engine.version == 1
    assert worker.engine.running() == [SampleId(0, 0)]
    now[0] += 0.2
    worker.steps(1)
    assert worker.engine.version == 2
    assert SampleId(1, 0) in worker.versions()


def test_an_idle_worker_reloads_at_once():
    worker = Worker(min_decode_steps=100, max_recompute_share=1e-6)
    for version in range(1, 4):
        worker.store.version = version
        worker.add(version, 1, admitted=version)
        worker.steps(1)
    assert worker.versions() == {SampleId(v, 0): [v] for v in range(1, 4)}


def test_the_start_of_a_group_is_reported_once():
    """With the version of its first sample, though the others start later."""
    worker = Worker(slots=1)
    worker.add(4, 2, 2)
    worker.steps(2)
    worker.store.version = 1
    worker.steps(2)
    started = [s for m in worker.sent if isinstance(m, say.Finished | say.Reloaded) for s in m.started]
    assert started == [(4, 0)]


def test_cancelled_samples_are_given_back():
    """Queued or running; those that had tokens come with them."""
    worker = Worker(slots=2)
    worker.add(0, 9, 9, 9)
    worker.add(1, 3)
    worker.steps(2)
    worker.cancel(frozenset({0}))
    (cancelled,) = worker.heard(say.Cancelled)
    assert sorted(cancelled.samples) == [SampleId(0, i) for i in range(3)]
    assert [(t.id, len(t.response_ids), t.finish_reason) for t, _ in cancelled.begun] == [
        (SampleId(0, 0), 2, "cancelled"),
        (SampleId(0, 1), 2, "cancelled"),
    ]
    worker.cancel(frozenset({0}))
    assert len(worker.heard(say.Cancelled)) == 1
    worker.steps(3)
    assert set(worker.versions()) == {SampleId(1, 0)}
    assert not worker.busy
