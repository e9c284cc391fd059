"""From rewards to advantages, once per batch and before it is split.

Always: rewards that are normalised together and all equal give advantages that are exactly 0, and are
counted. With `running_mean` a reward is compared with what came before, so there all equal rewards
are 0 only where they equal the baseline.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Advantages:
    """Advantages in the shape of the rewards, and which normalisation sets have no signal."""

    values: Tensor  # as the rewards
    zero_variance: Tensor  # (sets,) bool, all advantages of the set are 0


def group(rewards: Tensor, epsilon: float = 1e-4) -> Advantages:
    """(r − mean)/(std + ε) over each row, ddof 0 (GRPO, Shao et al. 2024, Section 4.1.2).

    Args: `rewards` (B, G), one row a prompt. Raises ValueError if G < 2: one sample has no spread.
    """
    if rewards.dim() != 2 or rewards.shape[1] < 2:
        raise ValueError(f"group advantages need rewards (B, G) with G >= 2, got {tuple(rewards.shape)}")
    return _normalize(rewards, epsilon)


def batch(rewards: Tensor, epsilon: float = 1e-4) -> Advantages:
    """(r − mean)/(std + ε) over all trajectories of a batch, ddof 0; one normalisation set."""
    result = _normalize(rewards.reshape(1, -1), epsilon)
    return Advantages(result.values.reshape(rewards.shape), result.zero_variance)


def running_mean(rewards: Tensor, before: Tensor) -> Advantages:
    """r − mean of the rewards before this batch; a baseline of 0 where there are none.

    Args: `before` (n,), n >= 0, the latest rewards of earlier batches. The whole batch is one set.
    """
    baseline = before.mean() if len(before) else torch.zeros((), dtype=rewards.dtype)
    values = rewards - baseline
    return Advantages(values, (values == 0).all().reshape(1))


def _normalize(rewards: Tensor, epsilon: float) -> Advantages:
    """Normalise each row; equality is tested on the rewards, as their mean may be off by rounding."""
    equal = (rewards == rewards[:, :1]).all(dim=1)
    centered = rewards - rewards.mean(dim=1, keepdim=True)
    scaled = centered / (rewards.std(dim=1, correction=0, keepdim=True) + epsilon)
    return Advantages(torch.where(equal[:, None], 0.0, scaled), equal)
