"""Losses whose ratio belongs to the whole sequence."""

import torch

from async_rollout.algorithms.objectives import BEHAVIOR, THETA, TokenLoss, Tokens, clip, result
from async_rollout.algorithms.ratio import LIMIT, LogRatio, require_finite


def gspo(
    tokens: Tokens, *, clip_low: float = 0.2, clip_high: float = 0.2, dual_clip: float | None = None
) -> TokenLoss:
    """−min(sA, clip(s)A), s = exp(mean over the sample's action tokens of log π_θ/π_behav).

    GSPO (Zheng et al. 2025, arXiv:2507.18071, Eq. 5). Every token of a sample carries the sample's
    loss, so `seq_mean` gives the paper's mean over samples. The mean, not the token, saturates.
    """
    wide = torch.promote_types(tokens.logprobs.dtype, torch.float32)
    difference = torch.where(tokens.mask, tokens.logprobs.to(wide) - tokens.behavior.to(wide), 0.0)
    parts = {THETA: tokens.logprobs, BEHAVIOR: tokens.behavior}
    require_finite(difference, f"log {THETA}/{BEHAVIOR}", parts, tokens.mask)
    mean = difference.sum(dim=1, keepdim=True) / tokens.mask.sum(dim=1, keepdim=True).clamp(min=1)
    mean = torch.where(tokens.mask, mean, 0.0)
    s = LogRatio(mean.clamp(-LIMIT, LIMIT), mean.detach().abs() > LIMIT)
    used, clipped = clip(s.ratio, tokens.advantages, clip_low, clip_high, dual_clip)
    return result(tokens, -tokens.advantages * used, s, clipped=clipped, weight=s.ratio.detach())
