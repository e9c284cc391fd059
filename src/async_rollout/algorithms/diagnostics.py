"""What an objective did to its tokens, as sums that add up over micro-batches and trainers."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from async_rollout.algorithms.objectives import TokenLoss


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Sums over the tokens in the mask; 0-d float64 tensors on the loss's device."""

    tokens: Tensor
    clipped: Tensor
    masked: Tensor
    saturations: Tensor
    weight_sum: Tensor
    weight_squares: Tensor
    weight_max: Tensor

    def __add__(self, other: "Diagnostics") -> "Diagnostics":
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Diagnostics(**sums | {"weight_max": torch.maximum(self.weight_max, other.weight_max)})

    @property
    def ess_ratio(self) -> Tensor:
        """Effective sample size ÷ tokens: (Σw)²/(n·Σw²), in (0, 1]; 1 when all weights are equal."""
        return (self.weight_sum.square() / (self.tokens * self.weight_squares)).clamp(max=1)


@torch.no_grad()
def diagnose(result: TokenLoss, mask: Tensor) -> Diagnostics:
    """Count and sum over the tokens of `mask` (n, L)."""
    weight = torch.where(mask, result.weight, 0.0).double()
    return Diagnostics(
        tokens=mask.sum().double(),
        clipped=result.clipped.sum().double(),
        masked=result.masked.sum().double(),
        saturations=result.saturated.sum().double(),
        weight_sum=weight.sum(),
        weight_squares=weight.square().sum(),
        weight_max=weight.max() if weight.numel() else weight.sum(),
    )
