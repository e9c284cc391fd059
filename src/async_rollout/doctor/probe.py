"""Fresh samples of the real model, and the trainer's view of them."""

from dataclasses import dataclass

import numpy as np
import torch

from async_rollout.config.run import RunConfig
from async_rollout.learner.batching import collate
from async_rollout.learner.rows import Row
from async_rollout.policy.interface import Policy
from async_rollout.policy.prompt import encode_prompts
from async_rollout.policy.registry import build_policy
from async_rollout.tasks.sources import load_source
from async_rollout.types import SampleId, SampleRequest, Trajectory

PROMPTS, SLOTS = 64, 16  # so that slots are refilled and prompts of several lengths share a forward


@dataclass(frozen=True, slots=True)
class Probe:
    """One run's policy and samples that it has just drawn."""

    run: RunConfig
    policy: Policy
    trajectories: list[Trajectory]
    logprobs: list[np.ndarray]  # (L,) each, by the trainer's forward, all in one padded batch
    entropies: list[np.ndarray]  # (L,) each


def probe(run: RunConfig) -> Probe:
    """Load the policy on the trainer's device and draw one sample for each of some training tasks.

    Tasks with an environment are drawn with it, as a run draws them.

    `run.model.id` is a directory or a hub id.
    """
    source = load_source(run.dataset, run.data)
    policy = build_policy(run, device=run.train.devices[0], tasks=source.train + source.held_out)
    requests = [
        SampleRequest.of(SampleId(i, 0), prompt, run.sampling.max_new_tokens)
        for i, prompt in enumerate(encode_prompts(policy.codec, source.train[:PROMPTS], run.prompt))
    ]
    engine = policy.engine(slots=SLOTS, seed=run.seed, version=0)
    trajectories: list[Trajectory] = []
    while requests or engine.free_slots < engine.slots:
        free = engine.free_slots
        engine.submit(requests[:free])
        del requests[:free]
        trajectories += engine.step()
    logprobs, entropies = score(policy, trajectories, run.sampling.temperature)
    return Probe(run, policy, trajectories, logprobs, entropies)


@torch.no_grad()
def score(
    policy: Policy, trajectories: list[Trajectory], temperature: float
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Log-probabilities and entropies of each trajectory, scored together in one padded batch."""
    rows = [
        Row(
            t,
            t.action_mask,
            np.zeros(len(t.response_ids), np.float32),
            np.zeros(len(t.response_ids), np.int64),
        )
        for t in trajectories
    ]
    scores = policy.score(collate(rows, policy.codec.pad_id).scoring, temperature)
    logprobs, entropies = scores.logprobs.cpu().numpy(), scores.entropy.cpu().numpy()
    lengths = [len(t.response_ids) for t in trajectories]
    return (
        [values[:n] for values, n in zip(logprobs, lengths, strict=True)],
        [values[:n] for values, n in zip(entropies, lengths, strict=True)],
    )
