"""The version on a token is that of the weights whose logits it was sampled from."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from async_rollout.records.events import Events
from async_rollout.runtime import messages as say
from async_rollout.runtime.parameter_service import ParameterService
from async_rollout.runtime.rollout_worker import RolloutWorker
from async_rollout.runtime.transfer import Transfer
from async_rollout.runtime.weights import open_weights
from tiny_policy import drain, perturb, run_config, sample_requests, snapshot, solo_logprobs, tiny_policy

SCHEDULES = {
    "before the first step": {0},
    "just after a prefill": {1},
    "at every step": set(range(100)),
    "twice in a row": {3, 4, 9, 10},
    "now and then": {2, 5, 11, 12, 20},
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_only_the_labelled_version_explains_a_token(name: str) -> None:
    """A fresh forward under the label's weights gives the token's log-probability, no other does."""
    policy = tiny_policy()
    engine = policy.engine(slots=3, seed=2, version=10)
    weights = {10: snapshot(policy)}
    at_step: dict[int, int] = {}

    def interrupt(step: int) -> None:
        if step in SCHEDULES[name]:
            version = 10 + len(weights)
            weights[version] = perturb(policy, version)
            engine.weights_changed(version)
        at_step[step] = engine.version

    finished = drain(engine, sample_requests(8, longest=12, shortest=6), interrupt)
    for trajectory in finished.values():
        assert (np.diff(trajectory.versions) >= 0).all()
        errors = {
            v: np.abs(solo_logprobs(policy, trajectory, 1.0, w) - trajectory.behavior_logprobs)
            for v, w in weights.items()
        }
        for i, label in enumerate(trajectory.versions):
            assert errors[label][i] < 1e-4
        others = [errors[v][i] for v in weights for i, label in enumerate(trajectory.versions) if v != label]
        assert np.mean(np.array(others) > 1e-4) > 0.95  # so a wrong label would have been seen
    assert {v for t in finished.values() for v in t.versions} == set(at_step.values())


class Forward:
    """A policy's forward, with something that happens after its logits and before its tokens."""

    def __init__(self, policy, then: Callable[[], None]):
        self._forward, self._then = policy._forward, then

    def __getattr__(self, name: str):
        return getattr(self._forward, name)

    def __call__(self, *arguments, **names):
        logits = self._forward(*arguments, **names)
        self._then()
        return logits


@pytest.mark.parametrize("transport", ["shared_memory", "disk"])
def test_also_when_a_version_is_published_in_mid_step(transport: str, tmp_path: Path) -> None:
    """By a trainer with weights of its own, through the parameter service, while a worker decodes."""
    trainer, policy, sent = tiny_policy(), tiny_policy(), []
    config = run_config(rollout={"slots": 3, "min_decode_steps": 2, "weights": transport})
    store = open_weights(config, tmp_path, 0)
    events = Events(tmp_path / "events.jsonl", "rollout-0")
    service, transfer = ParameterService(store, events), Transfer(trainer.parameters())
    store.allocate(transfer.layout)
    service.answer(say.Announce(transfer.layout))
    weights = {0: snapshot(trainer)}

    def publish() -> None:
        version = len(weights)
        weights[version] = perturb(trainer, version)
        store.write(service.answer(say.GrantRequest()).place, transfer.layout, transfer.copy_in)
        assert service.answer(say.Written(version)) == say.Visible(version)

    policy._forward = Forward(policy, publish)
    channel = SimpleNamespace(send=sent.append, unsent=False)
    worker = RolloutWorker(0, channel, store, config, policy, events)
    requests = sample_requests(8, longest=12, shortest=6)
    worker.accept(say.Work(0, tuple(requests)))
    while worker.busy:
        worker.advance()
    finished = [t for m in sent if isinstance(m, say.Finished) for t, _ in m.samples]
    assert len(finished) == len(requests)
    for trajectory in finished:
        for i, label in enumerate(trajectory.versions.tolist()):
            true = solo_logprobs(policy, trajectory, 1.0, weights[label])[i]
            assert abs(true - trajectory.behavior_logprobs[i]) < 1e-4
    assert len({v for t in finished for v in t.versions.tolist()}) > 4
    store.close()
