"""The version on a token is that of the weights whose logits it was sampled from."""

import numpy as np
import pytest

from tiny_policy import drain, perturb, sample_requests, snapshot, solo_logprobs, tiny_policy

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
