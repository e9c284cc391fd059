"""Losses of the form −weight · A · log π_θ: the ratio only weights, log π_θ carries the gradient."""

import math
from dataclasses import dataclass

import torch

from async_rollout.algorithms.objectives import BEHAVIOR, THETA, TokenLoss, Tokens, result
from async_rollout.algorithms.ratio import log_ratio


@dataclass(frozen=True, slots=True)
class Band:
    """Ratios that `dis` keeps. Edges are compared as logarithms, where an edge is exact."""

    low: float
    high: float
    closed: bool

    def keeps(self, log_r: torch.Tensor) -> torch.Tensor:
        """Bool in the shape of the log-ratio."""
        low, high = math.log(self.low), math.log(self.high)
        if self.closed:
            return (log_r >= low) & (log_r <= high)
        return (log_r > low) & (log_r < high)


BANDS = {
    "paper": Band(0.7, 6.0, closed=False),  # SAO, Eq. 3: 1 − 0.3 < r < 1 + 5.0
    "closed_03_5": Band(0.3, 5.0, closed=True),  # as public re-implementations read it
}


def dis(tokens: Tokens, *, band: Band = BANDS["paper"], detach: bool = True) -> TokenLoss:
    """−sg(f(r)) · A · log π_θ, r = π_θ/π_behav, f(r) = r inside the band, else 0 (SAO, arXiv:2607.07508).

    The mask does not depend on the sign of A. `detach: False` also differentiates f(r).
    """
    r = log_ratio(tokens.logprobs, tokens.behavior, tokens.mask, names=(THETA, BEHAVIOR))
    outside = ~band.keeps(r.value.detach())
    weight = torch.where(outside, 0.0, r.ratio)
    weight = weight.detach() if detach else weight
    return result(
        tokens,
        -weight * tokens.advantages * tokens.selected_logprobs,
        r,
        masked=outside,
        weight=r.ratio.detach(),
    )


def cispo(tokens: Tokens, *, clip_high: float = 0.2) -> TokenLoss:
    """−sg(min(r, 1 + ε_high)) · A · log π_θ, r = π_θ/π_behav (CISPO, MiniMax-M1, arXiv:2506.13585)."""
    r = log_ratio(tokens.logprobs, tokens.behavior, tokens.mask, names=(THETA, BEHAVIOR))
    ratio = r.ratio.detach()
    return result(
        tokens,
        -ratio.clamp(max=1 + clip_high) * tokens.advantages * tokens.selected_logprobs,
        r,
        clipped=ratio > 1 + clip_high,
        weight=ratio,
    )
