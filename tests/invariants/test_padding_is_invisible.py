"""A sample has the same log-probabilities alone and in a padded batch; padding is exactly nothing."""

import numpy as np
import pytest
import torch

from async_rollout.policy.interface import ScoringBatch
from async_rollout.types import SampleId, Trajectory
from tiny_policy import DEVICE, STOP, VOCABULARY, solo_logprobs, tiny_policy

KINDS = ["qwen2", "qwen2-eager", "gpt2"]


def _trajectories() -> list[Trajectory]:
    """Prompts of 1 to 14 tokens, responses of 1 to 11, ending in the stop (= padding) token."""
    rng = np.random.default_rng(0)
    made = []
    for i, (prompt, response) in enumerate([(3, 11), (14, 1), (1, 4), (7, 7)]):
        ids = rng.integers(3, VOCABULARY, size=prompt + response).astype(np.int32)
        ids[-1] = STOP
        n = np.zeros(response)
        made.append(Trajectory(SampleId(i, 0), ids[:prompt], ids[prompt:], n, n, n == 0, "stop"))
    return made


def _batch(trajectories: list[Trajectory], extra: int = 0) -> ScoringBatch:
    """Padded by hand with the stop id, `extra` columns more than needed on both sides."""
    n = len(trajectories)
    widths = [
        max(len(getattr(t, side)) for t in trajectories) + extra for side in ("prompt_ids", "response_ids")
    ]
    prompts, responses = (np.full((n, width), STOP) for width in widths)
    prompt_mask, response_mask = (np.zeros((n, width), dtype=bool) for width in widths)
    for i, t in enumerate(trajectories):
        prompts[i, widths[0] - len(t.prompt_ids) :] = t.prompt_ids
        prompt_mask[i, widths[0] - len(t.prompt_ids) :] = True
        responses[i, : len(t.response_ids)] = t.response_ids
        response_mask[i, : len(t.response_ids)] = True
    return ScoringBatch(prompts, prompt_mask, responses, response_mask)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_do_not_depend_on_padding(kind: str, temperature: float) -> None:
    """Padded scores equal an independent float64 softmax over a plain forward of each sample."""
    policy, trajectories = tiny_policy(kind), _trajectories()
    for extra in (0, 5):
        batch = _batch(trajectories, extra)
        scores = policy.score(batch, temperature)
        assert scores.logprobs.dtype == scores.entropy.dtype == torch.float32
        for i, trajectory in enumerate(trajectories):
            got = scores.logprobs[i, : len(trajectory.response_ids)].detach().cpu().numpy()
            np.testing.assert_allclose(got, solo_logprobs(policy, trajectory, temperature), atol=1e-4)
        assert (scores.logprobs.detach().cpu().numpy()[~batch.response_mask] == 0).all()
        assert (scores.entropy.cpu().numpy()[~batch.response_mask] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_do_not_depend_on_padding(kind: str) -> None:
    """One padded batch has the summed gradient of the samples alone, and all of it is finite."""
    policy, trajectories = tiny_policy(kind), _trajectories()

    def gradient(batches: list[ScoringBatch]) -> dict[str, torch.Tensor]:
        policy.model.zero_grad()
        for batch in batches:
            policy.score(batch, 1.0).logprobs.sum().backward()
        return {name: p.grad.clone() for name, p in policy.parameters().items()}

    padded, alone = gradient([_batch(trajectories, 5)]), gradient([_batch([t]) for t in trajectories])
    for name, expected in alone.items():
        assert padded[name].isfinite().all()
        torch.testing.assert_close(padded[name], expected, atol=1e-4, rtol=1e-4)


def test_entropy_is_that_of_the_tempered_distribution() -> None:
    """Entropy in nats against a float64 sum, detached from the graph."""
    policy, trajectory, temperature = tiny_policy(), _trajectories()[0], 0.6
    scores = policy.score(_batch([trajectory]), temperature)
    ids = (
        torch.from_numpy(np.concatenate([trajectory.prompt_ids, trajectory.response_ids]))[None]
        .long()
        .to(DEVICE)
    )
    logits = policy.model(input_ids=ids).logits[0, len(trajectory.prompt_ids) - 1 : -1].double() / temperature
    p = logits.softmax(dim=-1)
    torch.testing.assert_close(scores.entropy[0].double(), -(p * p.log()).sum(dim=-1), atol=1e-5, rtol=0)
    assert scores.logprobs.requires_grad
    assert not scores.entropy.requires_grad


@pytest.mark.parametrize("autocast", ["bfloat16", "float16"])
def test_softmax_stays_float32_under_autocast(autocast: str) -> None:
    """Autocast moves logits a little; the scores stay float32 and normalised."""
    plain, half = tiny_policy(), tiny_policy(model={"autocast": autocast})
    batch = _batch(_trajectories())
    exact, rough = (p.score(batch, 1.0).logprobs.detach() for p in (plain, half))
    assert rough.dtype == torch.float32
    assert 0 < (exact - rough).abs().max() < 0.5
    assert (rough.cpu().numpy()[~batch.response_mask] == 0).all()
