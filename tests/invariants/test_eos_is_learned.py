"""Invariant 9: the stop token is in the loss, also when pad = eos and with several stop ids."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from async_rollout.learner.batching import collate
from async_rollout.learner.learner import Learner
from async_rollout.learner.rows import Row, make_batch
from async_rollout.policy.causal_lm import CausalLMPolicy
from async_rollout.types import Group
from learning import groups, run_config
from tiny_policy import STOP, VOCABULARY, IdCodec, tiny_model

STOPS = (STOP, 7, 9)


def ending_in(stop: int) -> list[Group]:
    """Two groups of ragged samples that all end with this stop token; the longer ones are wrong."""
    batch = groups(seed=5, rewards=((1, 0, 1, 0), (0, 1, 0, 1)), vocabulary=VOCABULARY)
    result = []
    for group in batch:
        samples = []
        for sample in group.samples:
            ids = sample.trajectory.response_ids.copy()
            ids[np.isin(ids, STOPS)] = 3
            ids[-1] = stop
            samples.append(replace(sample, trajectory=replace(sample.trajectory, response_ids=ids)))
        result.append(replace(group, samples=tuple(samples)))
    return result


@pytest.mark.parametrize("pad", [0, STOP, 7])
@pytest.mark.parametrize("stop", STOPS)
def test_eos_is_learned(stop, pad):
    """Every response token trains, and the gradient of the last one is that of its advantage."""
    run = run_config(objective={"name": "live"}, batch={"groups": 2, "group_size": 4, "minibatches": 1})
    policy = CausalLMPolicy(tiny_model(), IdCodec(frozenset(STOPS), pad), run)
    batch = ending_in(stop)
    seen = {}

    def score(scoring, temperature, original=policy.score):
        scores = original(scoring, temperature)
        scores.logprobs.register_hook(lambda gradient: seen.update(gradient=gradient, scoring=scoring))
        return scores

    policy.score = score
    metrics = Learner(run, policy, "cpu").step(batch, version=0)
    tokens = sum(len(s.trajectory.response_ids) for g in batch for s in g.samples)
    assert metrics.trained_tokens == tokens
    gradient, scoring = seen["gradient"], seen["scoring"]
    lengths = scoring.response_mask.sum(axis=1)
    for row, length in enumerate(lengths):
        assert scoring.response_ids[row, length - 1] == stop
        assert gradient[row, length - 1].abs() == pytest.approx(0.5 / 0.5001 / tokens, rel=1e-5)
        assert (gradient[row, length:] == 0).all()


@pytest.mark.parametrize("pad", [0, STOP])
def test_training_on_answers_that_stop_makes_stopping_likelier(pad):
    """Only samples that stop early are right: their stop token becomes likelier, not the padding after it."""
    run = run_config(
        objective={"name": "live"},
        batch={"groups": 2, "group_size": 4, "minibatches": 1},
        optim={"lr": 1e-2},
        k="inf",
    )
    policy = CausalLMPolicy(tiny_model(), IdCodec(pad_id=pad), run)
    batch = ending_in(STOP)
    learner = Learner(run, policy, "cpu")

    def stop_logprob() -> float:
        rows = [r for r in rows_of(learner, batch) if r.advantages[0] > 0]
        with torch.no_grad():
            logprobs = policy.score(collate(rows, pad).scoring, 1.0).logprobs
        return float(sum(logprobs[i, len(r.mask) - 1] for i, r in enumerate(rows)))

    before = stop_logprob()
    for version in range(5):
        learner.step(batch, version)
    assert stop_logprob() > before + 0.1


def rows_of(learner: Learner, batch: list[Group]) -> list[Row]:
    return make_batch(batch, learner.config.advantage, 0, 0).rows
