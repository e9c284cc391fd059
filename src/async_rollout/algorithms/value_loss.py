"""What a critic minimises."""

from typing import NamedTuple

import torch
from torch import Tensor


class ValueLoss(NamedTuple):
    """Both (n, L), 0 or False outside the mask."""

    loss: Tensor
    clipped: Tensor  # bool: the bound, not the value, made the loss; its gradient is 0


def clipped_value_loss(
    values: Tensor, before: Tensor, returns: Tensor, mask: Tensor, clip: float
) -> ValueLoss:
    """0.5 · max((V − R)², (V_old + clip(V − V_old, ±c) − R)²), as PPO's code has it.

    Args: all (n, L); `before` V_old and `returns` R are fixed before the first pass over a batch.
    """
    values = torch.where(mask, values, 0.0)
    moved = values - before
    free = (values - returns).square()
    bounded = (before + moved.clamp(-clip, clip) - returns).square()
    loss = torch.where(mask, torch.maximum(free, bounded), 0.0) / 2
    return ValueLoss(loss, mask & (moved.detach().abs() > clip) & (bounded > free).detach())
