"""What trainers do together: sums, shards, and noticing that they have come apart."""

import re

import numpy as np
import pytest
import torch

from async_rollout.config.trainer import OptimConfig
from async_rollout.learner.learner import Learner
from async_rollout.learner.optimizer import Optimizer
from async_rollout.learner.ranks import Alone, Ranks
from async_rollout.learner.shards import Unshardable, shard
from async_rollout.policy.causal_lm import CausalLMPolicy
from async_rollout.runtime.checkpoint import load_training, write_training
from learning import groups, run_config
from tiny_policy import VOCABULARY, IdCodec, tiny_model
from trainers import train


def gradients(ranks: Ranks) -> list[torch.Tensor | None]:
    """A parameter that both ranks have a gradient for, one that rank 1 has, and one that nobody has."""
    parameters = [torch.nn.Parameter(torch.zeros(2, 3)) for _ in range(2)]
    parameters += [
        torch.nn.Parameter(torch.zeros(4, dtype=torch.bfloat16)),
        torch.nn.Parameter(torch.zeros(())),
    ]
    parameters[0].grad = torch.full((2, 3), 1.0 + ranks.rank)
    if ranks.rank == 1:
        parameters[2].grad = torch.full((4,), 7.0, dtype=torch.bfloat16)
    ranks.add_gradients(parameters)
    return [p.grad for p in parameters]


def test_gradients_are_summed_and_absent_ones_stay_absent(trainer_pair):
    for both, nobody, second, scalar in trainer_pair(gradients):
        assert torch.equal(both, torch.full((2, 3), 3.0))
        assert nobody is scalar is None
        assert torch.equal(second, torch.full((4,), 7.0, dtype=torch.bfloat16))


def joined(ranks: Ranks) -> dict[int, np.ndarray]:
    arrays = {3: np.zeros(2, np.float32), 5: np.zeros(1, np.float32), 8: np.zeros(3, np.float32)}
    for i in ((3, 8), (5,))[ranks.rank]:
        arrays[i] += i + 0.5
    return ranks.join(arrays)


def test_arrays_that_one_rank_filled_reach_all(trainer_pair):
    for found in trainer_pair(joined):
        assert {i: a.tolist() for i, a in found.items()} == {3: [3.5] * 2, 5: [5.5], 8: [8.5] * 3}


def overflowing(ranks: Ranks) -> str:
    """Rank 1 alone has an infinite gradient."""
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = Optimizer(
        OptimConfig(), {"weight": weight}, device=torch.device("cpu"), scaled=False, ranks=ranks
    )
    weight.grad = torch.full((3,), float("inf") if ranks.rank else 1.0)
    try:
        optimizer.step(0)
    except Exception as error:
        return f"{type(error).__name__}: {error}, {weight.tolist()}"
    return "stepped"


def test_a_gradient_that_is_not_finite_on_one_rank_stops_all(trainer_pair):
    expected = "NonFiniteError: the gradient of weight is not finite at version 0, [1.0, 1.0, 1.0]"
    assert trainer_pair(overflowing) == [expected] * 2


def apart(ranks: Ranks) -> str:
    """A learner whose rank 1 changed one value behind the group's back, at its next checkpoint."""
    ranks.sharded = False
    policy = CausalLMPolicy(tiny_model().cpu(), IdCodec(), run_config())
    learner = Learner(run_config(), policy, "cpu", ranks)
    learner.state_dict()
    if ranks.rank == 1:
        with torch.no_grad():
            policy.parameters()["model.norm.weight"][3] += 1e-6
    try:
        learner.state_dict()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "agreed"


def test_trainers_that_have_come_apart_are_named(trainer_pair):
    for said in trainer_pair(apart):
        assert re.match("ReplicasDiffer: trainer-1 and trainer-0 .* in parameter model.norm.weight$", said)


@pytest.mark.parametrize("kind", ["qwen2", "llama-untied"])
def test_shards_train_as_one_model_does(kind, trainer_pair):
    """Tied weights or not; the weights that leave are whole and under the same names."""
    blocks = {"optim": {"lr": 1e-3}}
    one = train(Alone(), blocks, kind=kind, updates=1)
    two, _ = trainer_pair(
        train, blocks | {"train": {"parallel": "fsdp2", "workers": 2}}, kind=kind, updates=1
    )
    assert list(two.weights) == list(one.weights)
    for name, expected in one.weights.items():
        torch.testing.assert_close(two.weights[name], expected, atol=1e-5, rtol=1e-4, msg=name)


def kept(ranks: Alone, blocks: dict, place, start=None) -> dict[str, torch.Tensor]:
    """One update, from a checkpoint if there is a start, and a checkpoint after it."""
    run = run_config(**blocks)
    ranks.sharded = run.train.parallel == "fsdp2"
    policy = CausalLMPolicy(tiny_model().cpu(), IdCodec(), run)
    learner = Learner(run, policy, "cpu", ranks)
    if start is not None:
        load_training(start, policy, learner)
    learner.step(groups(seed=int(start is not None), vocabulary=VOCABULARY), 0)
    whole = learner.whole()
    if ranks.rank == 0:
        write_training(place, whole, learner)
        return {name: p.detach().clone() for name, p in whole.parameters().items()}
    learner.state_dict()
    return {}


def test_a_checkpoint_does_not_tell_how_many_trainers_wrote_it(trainer_pair, tmp_path):
    """Written by one, by two copies, or by two shards; gone on with by shards and by one alone."""
    blocks = {"optim": {"lr": 1e-3}, "train": {"gradient_cosine": True}}
    sharded = blocks | {"train": {"gradient_cosine": True, "parallel": "fsdp2", "workers": 2}}
    places = [tmp_path / name for name in ("one", "shards", "then_one", "then_shards")]
    for place in places:
        place.mkdir()
    one, shards, then_one, then_shards = places
    kept(Alone(), blocks, one)
    trainer_pair(kept, sharded, shards)
    expected = kept(Alone(), blocks, then_one, one)
    for found in (
        kept(Alone(), blocks, then_one, shards),
        trainer_pair(kept, sharded, then_shards, one)[0],
        trainer_pair(kept, sharded, then_shards, shards)[0],
    ):
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, atol=1e-5, rtol=1e-4, msg=name)


def test_a_model_without_a_list_of_layers_is_refused_by_name():
    model = tiny_model()
    model.model.layers = torch.nn.Sequential(*model.model.layers)
    with pytest.raises(Unshardable, match=r"fsdp2: Qwen2ForCausalLM has no list of its 2 layers.*replicate"):
        shard(model)
