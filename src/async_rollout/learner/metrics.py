"""What one update did. Every mean is over the action tokens in the loss, unless said otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import add

import torch
from torch import Tensor

from async_rollout.algorithms.diagnostics import Diagnostics
from async_rollout.learner.optimizer import Step
from async_rollout.learner.ranks import Alone
from async_rollout.learner.rows import Batch
from async_rollout.types import UpdateMetrics


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

    @classmethod
    def nothing(cls, device: torch.device) -> "Tally":
        """Of no micro-batch at all."""
        zero = torch.zeros((), dtype=torch.float64, device=device)
        return cls(zero, zero, zero, zero, Diagnostics(*[zero] * len(fields(Diagnostics))))


def over_ranks(tallies: list[Tally], ranks: Alone) -> list[Tally]:
    """The tally of each minibatch, of all ranks together."""
    if ranks.size == 1 or not tallies:
        return tallies
    names = [f.name for f in fields(Diagnostics) if f.name != "weight_max"]
    sums = [[t.loss, t.kl, t.entropy, *(getattr(t.diagnostics, name) for name in names)] for t in tallies]
    tops = [[t.logratio_max, t.diagnostics.weight_max] for t in tallies]
    summed, highest = ranks.total(_table(sums)), ranks.largest(_table(tops))
    return [
        Tally(loss, kl, entropy, logratio, Diagnostics(**dict(zip(names, rest, strict=True)), weight_max=top))
        for (loss, kl, entropy, *rest), (logratio, top) in zip(summed, highest, strict=True)
    ]


def _table(rows: list[list[Tensor]]) -> Tensor:
    return torch.stack([torch.stack([value.double().cpu() for value in row]) for row in rows])


def summarize(batch: Batch, tallies: Sequence[Tally], steps: Sequence[Step], *, empty: bool) -> UpdateMetrics:
    """Metrics of one update from the tally of each minibatch and what each optimizer step saw."""
    cosines = [step.cosine for step in steps if step.cosine is not None]
    counts = {
        "grad_norm": sum(step.norm for step in steps) / max(1, len(steps)),
        "grad_cosine": sum(cosines) / len(cosines) if cosines else None,
        "zero_variance_groups": batch.zero_variance,
        "reward_mean": batch.reward_mean,
        "trained_tokens": sum(row.tokens for row in batch.rows),
        "trained_samples": sum(1 for row in batch.rows if row.tokens),
        "staleness": batch.staleness(),
        "optimizer_steps": len(steps),
        "empty": empty,
    }
    if not tallies:
        return UpdateMetrics(**_NOTHING, **counts)
    total = reduce(add, tallies)
    seen = total.diagnostics
    tokens = seen.tokens
    return UpdateMetrics(
        loss=float(total.loss) / len(tallies),
        kl=float(total.kl / tokens),
        entropy=float(total.entropy / tokens),
        clip_fraction=float(seen.clipped / tokens),
        mask_fraction=float(seen.masked / tokens),
        importance_weight_mean=float(seen.weight_sum / tokens),
        importance_weight_max=float(seen.weight_max),
        ess_ratio=float(seen.ess_ratio),
        saturations=int(seen.saturations),
        first_logratio_max=float(tallies[0].logratio_max),
        **counts,
    )


_NOTHING = {
    "loss": 0.0,
    "kl": 0.0,
    "entropy": 0.0,
    "clip_fraction": 0.0,
    "mask_fraction": 0.0,
    "importance_weight_mean": 0.0,
    "importance_weight_max": 0.0,
    "ess_ratio": 0.0,
    "saturations": 0,
    "first_logratio_max": 0.0,
}
