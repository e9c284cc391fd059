"""From judged groups to the rows that the loss sees.

Always: a row has one advantage and one mask entry a response token; the mask is True exactly
for action tokens that train; no row holds a token older than K. Advantages are computed here,
once per batch, before it is split.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from async_rollout.algorithms import advantages
from async_rollout.algorithms.ratio import NonFiniteError
from async_rollout.config.objective import AdvantageConfig
from async_rollout.types import Group, Sample, Trajectory


class StalenessError(RuntimeError):
    """A token that may not be trained reached the learner: a fault in the hand-over."""


@dataclass(frozen=True, slots=True)
class Row:
    """One trajectory with what the loss needs for each of its L response tokens."""

    trajectory: Trajectory
    mask: np.ndarray  # (L,) bool, in the loss
    advantages: np.ndarray  # (L,) float32
    staleness: np.ndarray  # (L,) int64, version of the step − version that sampled the token
    proximal: np.ndarray | None = None  # (L,) float32, log π_prox
    initial: np.ndarray | None = None  # (L,) float32, log π_init
    values: np.ndarray | None = None  # (L,) float32, V before the batch, where there is a critic
    returns: np.ndarray | None = None  # (L,) float32, what the critic learns
    tokens: int = field(init=False)  # in the loss

    def __post_init__(self):
        object.__setattr__(self, "tokens", int(np.count_nonzero(self.mask)))

    @property
    def has_signal(self) -> bool:
        """True if some token in the loss has an advantage other than 0."""
        return bool((self.advantages[self.mask] != 0).any())


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of one training step, in the order of groups and samples."""

    rows: list[Row]
    zero_variance: float  # share of normalisation sets with equal rewards
    reward_mean: float  # as judged
    rewards: np.ndarray  # (B, G) float64, as the advantages saw them

    def staleness(self) -> dict[int, int]:
        """{age: tokens in the loss}, by rising age."""
        ages = np.concatenate([row.staleness[row.mask] for row in self.rows])
        return {int(age): int(n) for age, n in zip(*np.unique(ages, return_counts=True), strict=True)}


def make_batch(
    groups: Sequence[Group],
    config: AdvantageConfig,
    version: int,
    bound: float,
    before: Sequence[float] = (),
) -> Batch:
    """Rows of these groups for the step that starts at `version`.

    `before` holds the latest rewards of earlier batches, for `running_mean`.

    Raises StalenessError if a token's staleness is outside [0, bound], ValueError if groups
    differ in size or a sample was not judged, NonFiniteError for a reward that is not finite.
    """
    judged = _rewards(groups)
    cut = np.array([[_truncated(s) for s in g.samples] for g in groups])
    used = np.where(cut, 0.0, judged) if config.truncated == "zero" else judged
    result = _advantages(torch.from_numpy(used), config, before)
    samples = [sample for group in groups for sample in group.samples]
    drop = cut.ravel().tolist() if config.truncated == "mask" else [False] * len(samples)
    rows = _rows(samples, result.values.ravel().numpy(), drop, version, bound)
    return Batch(rows, float(result.zero_variance.double().mean()), float(judged.mean()), used)


def _advantages(
    rewards: torch.Tensor, config: AdvantageConfig, before: Sequence[float]
) -> advantages.Advantages:
    match config.name:
        case "group":
            return advantages.group(rewards, config.epsilon)
        case "batch":
            return advantages.batch(rewards, config.epsilon)
        case "running_mean":
            return advantages.running_mean(rewards, torch.tensor(list(before), dtype=rewards.dtype))
        case "gae":  # token by token, from the critic's values: see credit.py
            return advantages.Advantages(torch.zeros_like(rewards), torch.zeros(1))
    raise ValueError(f"advantage.name: {config.name!r} is none of group, batch, running_mean, gae")


def _rows(
    samples: Sequence[Sample], advantages: np.ndarray, drop: Sequence[bool], version: int, bound: float
) -> list[Row]:
    """A row a sample, all arrays made at once; those to `drop` have no token in the loss."""
    trajectories = [sample.trajectory for sample in samples]
    lengths = [len(trajectory.response_ids) for trajectory in trajectories]
    masks = np.concatenate([trajectory.action_mask for trajectory in trajectories])
    versions = np.concatenate([trajectory.versions for trajectory in trajectories])
    staleness = np.where(masks, version - versions.astype(np.int64), 0)
    _check_staleness(trajectories, lengths, staleness, version, bound)
    masks[np.repeat(drop, lengths)] = False
    each = np.repeat(advantages.astype(np.float32), lengths)
    ends = np.cumsum(lengths).tolist()
    places = [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]
    return [Row(t, masks[at], each[at], staleness[at]) for t, at in zip(trajectories, places, strict=True)]


def _check_staleness(
    trajectories: Sequence[Trajectory],
    lengths: Sequence[int],
    staleness: np.ndarray,
    version: int,
    bound: float,
) -> None:
    wrong = np.flatnonzero((staleness < 0) | (staleness > bound))
    if len(wrong):
        culprit = trajectories[int(np.searchsorted(np.cumsum(lengths), wrong[0], side="right"))].id
        raise StalenessError(
            f"group {culprit.group}, sample {culprit.sample}: a token has staleness "
            f"{staleness[wrong[0]]} at version {version}; allowed is 0 to {bound:g}"
        )


def _rewards(groups: Sequence[Group]) -> np.ndarray:
    """(B, G) float64, as judged."""
    size = len(groups[0].samples)
    for group in groups:
        if len(group.samples) != size:
            raise ValueError(f"group {group.number} has {len(group.samples)} samples, others {size}")
        for sample in group.samples:
            where = f"group {group.number}, sample {sample.trajectory.id.sample}"
            if sample.verdict.infrastructure:
                raise ValueError(f"{where}: was never judged ({sample.verdict.verdict})")
            if not np.isfinite(sample.verdict.reward):
                raise NonFiniteError(f"{where}: the reward is {sample.verdict.reward}")
    return np.array([[s.verdict.reward for s in g.samples] for g in groups], dtype=np.float64)


def _truncated(sample: Sample) -> bool:
    return sample.trajectory.finish_reason == "length"
