"""From per-token losses to one loss, so that any split into micro-batches gives the same sum.

Always: loss = (sum of numerators over micro-batches and trainers) ÷ (denominator of the whole
minibatch). Sequences without a token in the loss count nowhere.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

Aggregation = Literal["token_mean", "seq_mean", "constant"]


def numerator(values: Tensor, mask: Tensor, how: Aggregation) -> Tensor:
    """This micro-batch's share of the loss before division; `values` and `mask` are (n, L)."""
    values = torch.where(mask, values, 0.0)
    if how == "seq_mean":
        values = values / mask.sum(dim=1, keepdim=True).clamp(min=1)
    return values.sum()


def denominator(tokens: Sequence[int], how: Aggregation, longest: int) -> int:
    """Divisor of a whole minibatch; 0 if no token is in the loss.

    Args: `tokens` in the loss by sequence; `longest` possible response, for `constant`:
    the sum ÷ (sequences · longest), of Dr. GRPO (Liu et al. 2025).
    """
    if how == "token_mean":
        return sum(tokens)
    sequences = sum(1 for count in tokens if count)
    if how == "seq_mean":
        return sequences
    if how == "constant":
        return sequences * longest
    raise ValueError(f"objective.aggregation: {how!r} is none of token_mean, seq_mean, constant")
