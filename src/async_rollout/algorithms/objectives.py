"""The losses of docs/design.md, section 6, one function each, behind one interface.

An objective maps `Tokens` to a `TokenLoss`. Always: the loss is per token and 0 outside the
mask; every ratio comes from `log_ratio`; a weight that multiplies the loss is detached; clipped
and ratio-masked tokens are marked, not removed, so they stay in the loss's denominator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from async_rollout.algorithms.ratio import LogRatio, log_ratio

THETA, BEHAVIOR, PROXIMAL = "π_θ", "π_behav", "π_prox"
WeightRule = Literal["exact", "clamp", "mask", "omit"]


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a loss looks at; all (n, L), one row a trajectory."""

    logprobs: Tensor  # log π_θ, with gradient
    behavior: Tensor  # log π_behav, as sampled
    advantages: Tensor
    mask: Tensor  # bool: action tokens in the loss
    proximal: Tensor | None = None  # log π_prox, for `decoupled`

    @property
    def selected_logprobs(self) -> Tensor:
        """log π_θ in float32 or wider, 0 outside the mask."""
        wide = torch.promote_types(self.logprobs.dtype, torch.float32)
        return torch.where(self.mask, self.logprobs.to(wide), 0.0)


@dataclass(frozen=True, slots=True)
class TokenLoss:
    """Per-token loss and what happened to each token; all (n, L), all but `loss` detached."""

    loss: Tensor
    clipped: Tensor  # bool: a clip bound replaced the ratio
    masked: Tensor  # bool: the importance weight was set to 0
    saturated: Tensor  # bool: a log-ratio was cut at ±20
    weight: Tensor  # importance weight against π_behav, before its cap; 1 outside the mask


Objective = Callable[[Tokens], TokenLoss]


def live(tokens: Tokens) -> TokenLoss:
    """−A · π_θ/sg(π_θ): policy gradient as if the samples were on policy, without correction.

    The reported weight π_θ/π_behav is what this loss leaves out.
    """
    off = log_ratio(tokens.logprobs.detach(), tokens.behavior, tokens.mask, names=(THETA, BEHAVIOR))
    own = log_ratio(tokens.logprobs, tokens.logprobs.detach(), tokens.mask, names=(THETA, THETA))
    return result(tokens, -tokens.advantages * own.ratio, off, weight=off.ratio)


def behavior(
    tokens: Tokens, *, clip_low: float = 0.2, clip_high: float = 0.2, dual_clip: float | None = None
) -> TokenLoss:
    """−min(rA, clip(r, 1 − ε_low, 1 + ε_high)A), r = π_θ/π_behav.

    PPO (Schulman et al. 2017, Eq. 7) with the sampler as old policy: "naive PPO" in AReaL, Fig. 5a.
    """
    ratio = log_ratio(tokens.logprobs, tokens.behavior, tokens.mask, names=(THETA, BEHAVIOR))
    used, clipped = clip(ratio.ratio, tokens.advantages, clip_low, clip_high, dual_clip)
    return result(tokens, -tokens.advantages * used, ratio, clipped=clipped, weight=ratio.ratio.detach())


def decoupled(
    tokens: Tokens,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
    weight: WeightRule = "mask",
    weight_limit: float = 5.0,
) -> TokenLoss:
    """−w · min(uA, clip(u, 1 − ε_low, 1 + ε_high)A), u = π_θ/π_prox, w = sg(π_prox/π_behav).

    Decoupled PPO (Hilton et al. 2022; AReaL, arXiv:2505.24298, Eq. 5). `weight` says what becomes
    of w: `exact` as it is, `clamp` min(w, limit), `mask` 0 where w > limit, `omit` 1.
    """
    if tokens.proximal is None:
        raise ValueError("objective decoupled needs the log-probabilities of the proximal policy")
    u = log_ratio(tokens.logprobs, tokens.proximal.detach(), tokens.mask, names=(THETA, PROXIMAL))
    w = log_ratio(tokens.proximal.detach(), tokens.behavior, tokens.mask, names=(PROXIMAL, BEHAVIOR))
    used, clipped = clip(u.ratio, tokens.advantages, clip_low, clip_high, dual_clip)
    applied, masked = cap(w.ratio, weight, weight_limit)
    return result(
        tokens, -applied * tokens.advantages * used, u, w, clipped=clipped, masked=masked, weight=w.ratio
    )


def clip(
    ratio: Tensor, advantages: Tensor, low: float, high: float, dual: float | None
) -> tuple[Tensor, Tensor]:
    """The ratio that min(rA, clip(r)A) uses, and where a bound replaced it.

    The minimum only ever binds above for A > 0 and below for A < 0. `dual` c > 1 also bounds
    the ratio above for A < 0 (Ye et al. 2020, Eq. 5). The bounds themselves keep their gradient.
    """
    infinity = torch.full_like(advantages, torch.inf)
    ceiling = infinity if dual is None else torch.full_like(advantages, dual)
    upper = torch.where(advantages > 0, 1 + high, torch.where(advantages < 0, ceiling, infinity))
    lower = torch.where(advantages < 0, 1 - low, -infinity)
    clipped = (ratio.detach() < lower) | (ratio.detach() > upper)
    return ratio.clamp(lower, upper), clipped


def cap(weight: Tensor, rule: WeightRule, limit: float) -> tuple[Tensor, Tensor]:
    """The weight as the loss uses it, and where it was set to 0."""
    none = torch.zeros_like(weight, dtype=torch.bool)
    if rule == "exact":
        return weight, none
    if rule == "clamp":
        return weight.clamp(max=limit), none
    if rule == "mask":
        return torch.where(weight > limit, 0.0, weight), weight > limit
    if rule == "omit":
        return torch.ones_like(weight), none
    raise ValueError(f"objective.weight: {rule!r} is none of exact, clamp, mask, omit")


def result(
    tokens: Tokens,
    loss: Tensor,
    *ratios: LogRatio,
    weight: Tensor,
    clipped: Tensor | None = None,
    masked: Tensor | None = None,
) -> TokenLoss:
    """Select the tokens of the mask; nothing outside it is clipped, masked or saturated."""
    none = torch.zeros_like(tokens.mask)
    saturated = none
    for ratio in ratios:
        saturated = saturated | ratio.saturated
    return TokenLoss(
        loss=torch.where(tokens.mask, loss, 0.0),
        clipped=none if clipped is None else clipped & tokens.mask,
        masked=none if masked is None else masked & tokens.mask,
        saturated=saturated,
        weight=weight,
    )
