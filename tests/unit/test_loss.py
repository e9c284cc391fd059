"""The configured loss is the function that the configuration names, with its keys."""

from functools import partial

import pytest
import torch

from async_rollout.algorithms.objectives import Tokens, behavior, decoupled, live
from async_rollout.algorithms.sequence import gspo
from async_rollout.algorithms.weighted import BANDS, cispo, dis
from async_rollout.config.objective import READERS, ObjectiveConfig
from async_rollout.learner.loss import build_objective

BOUNDS = {"clip_low": 0.1, "clip_high": 0.3, "dual_clip": 1.4}
CASES = [
    ({"name": "live"}, live),
    ({"name": "behavior", **BOUNDS}, partial(behavior, **BOUNDS)),
    (
        {"name": "decoupled", **BOUNDS, "weight": "clamp", "weight_limit": 1.2},
        partial(decoupled, **BOUNDS, weight="clamp", weight_limit=1.2),
    ),
    ({"name": "dis"}, dis),
    (
        {"name": "dis", "band": "closed_03_5", "detach": False},
        partial(dis, band=BANDS["closed_03_5"], detach=False),
    ),
    ({"name": "gspo", **BOUNDS}, partial(gspo, **BOUNDS)),
    ({"name": "cispo", "clip_high": 0.3}, partial(cispo, clip_high=0.3)),
]
OTHER = {
    "clip_low": 0.05,
    "clip_high": 0.04,
    "dual_clip": 1.1,
    "weight": "omit",
    "weight_limit": 1.05,
    "band": "closed_03_5",
    "detach": False,
}


def tokens(spread: float = 1.0) -> Tokens:
    g = torch.Generator().manual_seed(0)
    logprobs, behavior, proximal, advantages = (
        torch.randn(6, 9, generator=g, dtype=torch.float64) for _ in range(4)
    )
    mask = torch.rand(6, 9, generator=g) < 0.8
    return Tokens(
        (spread * logprobs - 2).requires_grad_(),
        spread * behavior - 2,
        advantages,
        mask,
        spread * proximal - 2,
    )


def outcome(objective, seen: Tokens) -> tuple[torch.Tensor, torch.Tensor]:
    """(loss, gradient)"""
    loss = objective(seen).loss
    (gradient,) = torch.autograd.grad(loss.sum(), seen.logprobs)
    return loss.detach(), gradient


@pytest.mark.parametrize(("keys", "expected"), CASES, ids=lambda value: str(value)[:40])
def test_a_configuration_is_its_function(keys: dict, expected) -> None:
    seen = tokens()
    for ours, theirs in zip(
        outcome(build_objective(ObjectiveConfig(**keys)), seen), outcome(expected, seen), strict=True
    ):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("key", OTHER)
@pytest.mark.parametrize("name", ["live", "behavior", "decoupled", "dis", "gspo", "cispo"])
def test_a_key_changes_the_losses_that_read_it_and_no_other(name: str, key: str) -> None:
    """`READERS` tells which combinations are inert: it must be neither too long nor too short."""
    seen = tokens()
    plain, changed = (
        outcome(build_objective(ObjectiveConfig(name=name, **keys)), seen) for keys in ({}, {key: OTHER[key]})
    )
    same = all(torch.equal(a, b) for a, b in zip(plain, changed, strict=True))
    assert same != (name in READERS[f"objective.{key}"])


def test_an_unresolved_axis_is_no_loss() -> None:
    with pytest.raises(ValueError, match="must be resolved"):
        build_objective(ObjectiveConfig())
