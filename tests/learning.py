"""A policy small enough to check by hand, and judged groups to train it on."""

from types import SimpleNamespace

import numpy as np
import torch

from async_rollout.config.run import RunConfig
from async_rollout.policy.interface import Scores, ScoringBatch
from async_rollout.types import Group, Sample, SampleId, Trajectory, Verdict

VOCABULARY = 11
PAD, STOP = 0, 1


class BigramPolicy:
    """Policy (see policy/interface.py) whose logits depend on the previous token alone."""

    def __init__(self, seed: int = 0, dtype: torch.dtype = torch.float64):
        g = torch.Generator().manual_seed(seed)
        self.table = torch.nn.Parameter(torch.randn(VOCABULARY, VOCABULARY, generator=g, dtype=dtype))
        self.codec = SimpleNamespace(stop_ids=frozenset({STOP}), pad_id=PAD)
        self.scored: list[tuple[int, bool]] = []  # (rows, with gradient) of each call

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        return {"table": self.table}

    def score(self, batch: ScoringBatch, temperature: float) -> Scores:
        self.scored.append((len(batch.response_ids), torch.is_grad_enabled()))
        previous = np.concatenate([batch.prompt_ids[:, -1:], batch.response_ids[:, :-1]], axis=1)
        logits = self.table[torch.from_numpy(previous)] / temperature
        every = logits.log_softmax(-1)
        mask = torch.from_numpy(batch.response_mask)
        chosen = every.gather(-1, torch.from_numpy(batch.response_ids)[..., None])[..., 0]
        entropy = -(every.exp() * every).sum(-1).detach()
        return Scores(torch.where(mask, chosen, 0.0), torch.where(mask, entropy, 0.0))

    def logprob(self, trajectory: Trajectory) -> torch.Tensor:
        """(L,) of one trajectory alone, without padding."""
        ids = torch.from_numpy(trajectory.response_ids.astype(np.int64))
        previous = torch.cat([torch.tensor([int(trajectory.prompt_ids[-1])]), ids[:-1]])
        return self.table[previous].log_softmax(-1)[torch.arange(len(ids)), ids]


def run_config(**blocks) -> RunConfig:
    """A resolved cell with two groups of four; `blocks` override whole blocks."""
    axes = {"experiment": "test", "dataset": "sort", "mode": "areal", "algorithm": "grpo", "arm": ""}
    defaults = {
        "k": 4,
        "decoupled": 1,
        "seed": 0,
        "batch": {"groups": 2, "group_size": 4, "minibatches": 2},
        "objective": {"name": "decoupled"},
    }
    return RunConfig(**axes | defaults | blocks)


def trajectory(
    rng: np.random.Generator,
    sample: SampleId,
    *,
    length: int | None = None,
    prompt_length: int | None = None,
    versions: tuple[int, int] = (0, 0),
    finish_reason: str = "stop",
    vocabulary: int = VOCABULARY,
) -> Trajectory:
    """Random tokens, and log-probabilities of some sampler; versions rise from first to second."""
    length = int(rng.integers(1, 9)) if length is None else length
    prompt_length = int(rng.integers(1, 6)) if prompt_length is None else prompt_length
    response = rng.integers(2, vocabulary, size=length)
    if finish_reason == "stop":
        response[-1] = STOP
    return Trajectory(
        id=sample,
        prompt_ids=rng.integers(2, vocabulary, size=prompt_length).astype(np.int32),
        response_ids=response.astype(np.int32),
        behavior_logprobs=(-1.5 - rng.random(length)).astype(np.float32),
        versions=np.sort(rng.integers(versions[0], versions[1] + 1, size=length)).astype(np.int32),
        action_mask=np.ones(length, dtype=bool),
        finish_reason=finish_reason,
    )


def groups(
    seed: int = 0, rewards: tuple[tuple[float, ...], ...] = ((0, 1, 0, 1), (1, 0, 0, 0)), **how
) -> list[Group]:
    """One judged group a row of rewards; `how` goes to `trajectory`."""
    rng = np.random.default_rng(seed)
    return [
        Group(
            number=number,
            task_id=f"task-{number}",
            samples=tuple(
                Sample(
                    trajectory(rng, SampleId(number, i), **how),
                    text="",
                    verdict=Verdict(float(reward), "pass" if reward == 1 else "fail"),
                )
                for i, reward in enumerate(row)
            ),
        )
        for number, row in enumerate(rewards)
    ]
