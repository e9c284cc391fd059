"""What one update did. Every mean is over the action tokens in the loss, unless said otherwise."""

from dataclasses import dataclass

import torch
from torch import Tensor

from async_rollout.algorithms.diagnostics import Diagnostics


@dataclass(frozen=True, slots=True)
class UpdateMetrics:
    """Plain numbers; all finite. With no token in the loss every mean is 0.

    An `empty` update still measures: its loss and gradient are 0, its KL and entropy are true.
    """

    loss: float  # mean over minibatches
    kl: float  # estimate against the configured reference; against behavior when kl.coef is 0
    entropy: float  # nats
    grad_norm: float  # before clipping, mean over optimizer steps
    clip_fraction: float
    mask_fraction: float
    importance_weight_mean: float  # before its cap
    importance_weight_max: float
    ess_ratio: float  # effective sample size of the weights ÷ tokens
    saturations: int  # tokens with a log-ratio beyond ±20
    zero_variance_groups: float  # share of normalisation sets with equal rewards
    reward_mean: float  # of samples, as judged
    trained_tokens: int  # action tokens in the loss
    trained_samples: int  # samples with such a token
    first_logratio_max: float  # max |log π_θ − log π_behav| before the first optimizer step
    staleness: dict[int, int]  # {age: trained tokens}, age = the step's version − token's version
    optimizer_steps: int
    empty: bool  # nothing was trainable: same weights


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over one micro-batch, or over many; `+` adds them. 0-d tensors on the policy's device."""

    loss: Tensor  # numerator ÷ denominator of its minibatch: adds up to the minibatch's loss
    kl: Tensor  # sum over tokens
    entropy: Tensor  # sum over tokens
    logratio_max: Tensor  # max |log π_θ − log π_behav|
    diagnostics: Diagnostics

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.loss + other.loss,
            self.kl + other.kl,
            self.entropy + other.entropy,
            torch.maximum(self.logratio_max, other.logratio_max),
            self.diagnostics + other.diagnostics,
        )
