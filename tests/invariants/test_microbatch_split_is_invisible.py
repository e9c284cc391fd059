"""Invariant 7: loss and gradient do not depend on micro-batches, order, padding or the number of trainers."""

from dataclasses import asdict

import pytest
import torch

from async_rollout.learner.learner import Learner
from async_rollout.learner.ranks import Alone
from async_rollout.learner.rows import make_batch
from async_rollout.policy.causal_lm import CausalLMPolicy
from async_rollout.types import UpdateMetrics
from learning import groups, run_config
from tiny_policy import DEVICE, VOCABULARY, IdCodec, tiny_model
from trainers import train

WHOLE = 10**6


def loss_and_gradient(budget: int, order: list[int], config: dict) -> tuple[float, torch.Tensor]:
    """Of one minibatch, in micro-batches of `budget` tokens, its rows given in this order."""
    run = run_config(**config, train={"microbatch_tokens": budget})
    policy = CausalLMPolicy(tiny_model(), IdCodec(), run)
    learner = Learner(run, policy, DEVICE)
    batch = make_batch(groups(seed=3, versions=(0, 2), vocabulary=VOCABULARY), run.advantage, 2, run.k)
    rows = learner._with_references(batch.rows, train=True)
    tally = learner.accumulate([rows[i] for i in order])
    return float(tally.loss), torch.cat([p.grad.flatten() for p in policy.parameters().values()])


@pytest.mark.parametrize("aggregation", ["token_mean", "seq_mean", "constant"])
@pytest.mark.parametrize("name", ["live", "behavior", "decoupled"])
def test_microbatch_split_is_invisible(name, aggregation):
    config = {
        "objective": {"name": name, "aggregation": aggregation},
        "kl": {"coef": 0.1, "reference": "initial"},
    }
    expected_loss, expected = loss_and_gradient(WHOLE, list(range(8)), config)
    assert expected.abs().max() > 1e-2
    for budget, order in ((16, list(range(8))), (40, list(range(8))), (WHOLE, [5, 2, 7, 0, 1, 6, 4, 3])):
        loss, gradient = loss_and_gradient(budget, order, config)
        assert loss == pytest.approx(expected_loss, abs=1e-5)
        torch.testing.assert_close(gradient, expected, atol=1e-5, rtol=1e-4)


def test_an_update_does_not_depend_on_the_split():
    """The whole step too: reference passes, minibatches, optimizer."""
    tables = []
    for budget in (16, WHOLE):
        run = run_config(train={"microbatch_tokens": budget}, optim={"lr": 1e-3})
        policy = CausalLMPolicy(tiny_model(), IdCodec(), run)
        Learner(run, policy, DEVICE).step(groups(seed=3, vocabulary=VOCABULARY), version=0)
        tables.append(torch.cat([p.detach().flatten() for p in policy.parameters().values()]))
    torch.testing.assert_close(tables[0], tables[1], atol=1e-5, rtol=1e-4)


SINGLE = ((1,), (0,), (1,), (0,), (1,), (1,), (0,), (0,))  # rewards of eight groups of one
SAO = {
    "algorithm": "sao",
    "batch": {"groups": 8, "group_size": 1, "minibatches": 2},
    "objective": {"name": "dis"},
    "advantage": {"name": "gae"},
    "critic": {"warmup_updates": 0, "freeze_attention": True},
}
CASES = {
    "many micro-batches": ({"train": {"microbatch_tokens": 16, "gradient_cosine": True}}, {}),
    "a trajectory a minibatch": ({"batch": {"groups": 2, "group_size": 4, "minibatches": 8}}, {}),
    "clipped, decayed, bound to the start": (
        {
            "optim": {"lr": 1e-3, "grad_clip": 0.01, "weight_decay": 0.1},
            "kl": {"coef": 0.1, "reference": "initial"},
        },
        {},
    ),
    "with a critic": (SAO, {"rewards": SINGLE}),
}


@pytest.mark.parametrize("parallel", ["replicate", "fsdp2"])
@pytest.mark.parametrize("case", CASES)
def test_an_update_does_not_depend_on_the_number_of_trainers(case, parallel, trainer_pair):
    """Weights, and all that is reported, whether each trainer holds a copy or a shard."""
    blocks, how = CASES[case]
    blocks = {"optim": {"lr": 1e-3}} | blocks
    shared = blocks | {"train": blocks.get("train", {}) | {"workers": 2, "parallel": parallel}}
    one = train(Alone(), blocks, **how)
    two, other = trainer_pair(train, shared, **how)
    for name, expected in one.weights.items():
        torch.testing.assert_close(two.weights[name], expected, atol=1e-5, rtol=1e-4, msg=name)
    assert two.metrics == other.metrics
    for expected, found in zip(one.metrics, two.metrics, strict=True):
        assert expected.grad_norm > 1e-2
        assert _numbers(found) == pytest.approx(_numbers(expected), rel=1e-4, abs=1e-5)


def _numbers(metrics: UpdateMetrics) -> dict[str, float]:
    """Plain numbers by name, the critic's too."""
    flat = asdict(metrics)
    flat |= {f"critic.{name}": value for name, value in (flat.pop("critic") or {}).items()}
    flat |= {f"staleness.{age}": n for age, n in flat.pop("staleness").items()}
    return {name: value for name, value in flat.items() if value is not None}
