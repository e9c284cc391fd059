"""KL penalties per token, by Schulman's estimators (http://joschu.net/blog/kl-approx.html).

Always: 0 where the two policies agree, never negative, and a gradient that pulls π_θ back.
k3 estimates the value without bias; its gradient, taken inside a loss, is biased.
"""

from typing import Literal

import torch
from torch import Tensor

from async_rollout.algorithms.ratio import log_ratio

Estimator = Literal["k3", "k2"]
WEIGHT_LIMIT = 5.0


def estimate(log_r: Tensor, estimator: Estimator) -> Tensor:
    """k3 = r − 1 − log r, or k2 = (log r)²/2, of a log-ratio; same shape."""
    if estimator == "k3":
        return torch.expm1(log_r) - log_r
    if estimator == "k2":
        return log_r.square() / 2
    raise ValueError(f"kl.estimator: {estimator!r} is none of k3, k2")


def to_behavior(logprobs: Tensor, behavior: Tensor, mask: Tensor, estimator: Estimator) -> Tensor:
    """KL(π_behav ‖ π_θ) on samples of π_behav: r = π_θ/π_behav. All (n, L)."""
    return estimate(log_ratio(logprobs, behavior, mask, names=("π_θ", "π_behav")).value, estimator)


def to_initial(
    logprobs: Tensor, behavior: Tensor, initial: Tensor, mask: Tensor, estimator: Estimator
) -> Tensor:
    """KL(π_θ ‖ π_init): r = π_init/π_θ, weighted by sg(min(π_θ/π_behav, 5)). All (n, L).

    The weight makes samples of π_behav stand for samples of π_θ.
    """
    log_r = log_ratio(initial.detach(), logprobs, mask, names=("π_init", "π_θ")).value
    weight = log_ratio(logprobs.detach(), behavior, mask, names=("π_θ", "π_behav")).ratio
    return weight.clamp(max=WEIGHT_LIMIT) * estimate(log_r, estimator)
