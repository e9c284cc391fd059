"""After an interruption, old tokens keep the old policy's log-probabilities, new ones get the new's."""

import numpy as np
import pytest

from tiny_policy import drain, perturb, sample_requests, snapshot, solo_logprobs, tiny_policy


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("kind", ["qwen2", "qwen2-eager", "gpt2"])
def test_each_token_carries_the_logprob_of_the_policy_that_sampled_it(kind: str, temperature: float) -> None:
    """Each segment of a mixed sample agrees with a fresh forward of its own policy on the full prefix."""
    policy = tiny_policy(kind, sampling={"temperature": temperature}, rollout={"prefill_tokens": 48})
    engine = policy.engine(slots=5, seed=1, version=0)
    weights = {0: snapshot(policy)}

    def interrupt(step: int) -> None:
        if step % 7 == 6:
            version = len(weights)
            weights[version] = perturb(policy, version)
            engine.weights_changed(version)

    finished = drain(engine, sample_requests(16, longest=24), interrupt)
    mixed = [t for t in finished.values() if len(set(t.versions)) > 1]
    assert len(mixed) >= 5
    for trajectory in finished.values():
        alone = {v: solo_logprobs(policy, trajectory, temperature, w) for v, w in weights.items()}
        expected = np.array([alone[v][i] for i, v in enumerate(trajectory.versions)])
        np.testing.assert_allclose(trajectory.behavior_logprobs, expected, atol=1e-4)
    # The versions differ enough for this test to see a wrong one.
    first, last = mixed[0], mixed[0].versions[-1]
    wrong = solo_logprobs(policy, first, temperature, weights[last])
    assert np.abs(wrong - first.behavior_logprobs)[first.versions != last].max() > 0.05


def test_recompute_reports_its_cost() -> None:
    """Resumed samples and the prefix tokens computed again; waiting samples are no cost of it."""
    policy = tiny_policy(stop_ids=())
    engine = policy.engine(slots=4, seed=0, version=0)
    requests = sample_requests(4, shortest=10)
    engine.submit(requests[:3])
    for _ in range(4):
        engine.step()
    engine.submit(requests[3:])
    cost = engine.weights_changed(1)
    assert cost.resumed_samples == 3
    assert cost.tokens == sum(len(r.prompt_ids) + 4 - 1 for r in requests[:3])
    assert cost.seconds > 0
    assert policy.engine(slots=2, seed=0, version=0).weights_changed(3).resumed_samples == 0
