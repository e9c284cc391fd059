"""Layers that compute their activations again: same numbers, less kept, and decoding as before."""

import pytest
import torch

from async_rollout.learner.learner import Learner
from async_rollout.learner.rows import make_batch
from async_rollout.policy.causal_lm import CausalLMPolicy
from async_rollout.policy.recompute import recompute_activations
from learning import groups, run_config
from tiny_policy import VOCABULARY, IdCodec, drain, sample_requests, tiny_model


def gradient(again: bool, kind: str) -> tuple[torch.Tensor, int]:
    """Of one minibatch, and the values that were kept for its backward pass."""
    run = run_config(train={"gradient_checkpointing": again})
    policy = CausalLMPolicy(tiny_model(kind), IdCodec(), run)
    rows = make_batch(groups(seed=3, vocabulary=VOCABULARY), run.advantage, 0, 0).rows
    saved = 0

    def count(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal saved
        saved += tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        Learner(run, policy, "cpu").accumulate(rows)
    return torch.cat([p.grad.flatten() for p in policy.parameters().values()]), saved


@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
def test_gradients_are_the_same_and_less_is_kept(kind):
    """gpt2 has dropout, which must stay off."""
    expected, kept = gradient(False, kind)
    found, kept_less = gradient(True, kind)
    assert expected.abs().max() > 1e-2
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    assert kept_less < 0.7 * kept


def test_a_critic_made_from_such_a_model_does_the_same():
    policies = [
        CausalLMPolicy(tiny_model(), IdCodec(), run_config(train={"gradient_checkpointing": again}))
        for again in (False, True)
    ]
    plain, again = (p.value_model(freeze_attention=False).backbone for p in policies)
    assert not any(layer.gradient_checkpointing and layer.training for layer in plain.layers)
    assert all(layer.gradient_checkpointing and layer.training for layer in again.layers)


def test_decoding_keeps_its_cache():
    texts = []
    for again in (False, True):
        run = run_config(train={"gradient_checkpointing": again})
        policy = CausalLMPolicy(tiny_model(), IdCodec(), run)
        finished = drain(policy.engine(slots=3, seed=0, version=0), sample_requests(6))
        texts.append({key: t.response_ids.tolist() for key, t in finished.items()})
    assert texts[0] == texts[1]


def test_a_model_that_cannot_is_refused_by_name():
    model = torch.nn.Linear(2, 2)
    with pytest.raises(
        ValueError, match=r"gradient_checkpointing: true, but model.id = some/model \(Linear\)"
    ):
        recompute_activations(model, "some/model")
