"""One optimizer step: fused AdamW with clipping, linear warm-up and, for float16, loss scaling.

Always: clipping goes by the norm of the whole gradient, over all ranks and parts, so every rank
decides alike; a gradient that is not finite never reaches the weights. Under loss scaling it lowers the
scale and skips the step; otherwise, or once the scale is below 1, it raises and names the parameter.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from async_rollout.algorithms.ratio import NonFiniteError
from async_rollout.config.trainer import OptimConfig
from async_rollout.learner.ranks import ALONE, Alone
from async_rollout.learner.shards import part_like, whole


@dataclass(frozen=True, slots=True)
class Step:
    """What one optimizer step saw."""

    norm: float  # of the gradient, before clipping
    cosine: float | None  # to the gradient of the step before; None if there was none, or it is not measured


class Optimizer:
    """AdamW over named parameters."""

    def __init__(
        self,
        config: OptimConfig,
        parameters: dict[str, torch.nn.Parameter],
        *,
        device: torch.device,
        scaled: bool,
        measure_cosine: bool = False,
        ranks: Alone = ALONE,
    ):
        self.config = config
        self.parameters = parameters
        self._adamw = torch.optim.AdamW(
            list(parameters.values()),
            lr=config.lr,
            betas=config.betas,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self._ranks = ranks
        self._measure_cosine = measure_cosine
        self._previous: list[Tensor] | None = None  # the last step's gradient, if cosines are measured
        self._scaler = torch.amp.GradScaler(device.type, enabled=scaled)

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of `loss` to what is accumulated."""
        self._scaler.scale(loss).backward()

    def step(self, version: int) -> Step | None:
        """Clip, step and forget the gradient.

        `version` counts updates for the warm-up. Returns None if loss scaling skipped the step.
        """
        for group in self._adamw.param_groups:
            group["lr"] = self.config.lr * self._warmup(version)
        self._ranks.add_gradients(self.parameters.values())
        self._scaler.unscale_(self._adamw)
        gradients = [p.grad for p in self.parameters.values() if p.grad is not None]
        norm = whole(torch.nn.utils.get_total_norm(gradients))
        finite = bool(torch.isfinite(norm))
        if not finite and (not self._scaler.is_enabled() or self._scaler.get_scale() < 1):
            raise NonFiniteError(f"the gradient of {self._culprit()} is not finite at version {version}")
        cosine = self._cosine(gradients, norm) if finite and self._measure_cosine else None
        torch.nn.utils.clip_grads_with_norm_(self.parameters.values(), self.config.grad_clip, norm)
        self._scaler.step(self._adamw)
        self._scaler.update()
        self._adamw.zero_grad(set_to_none=True)
        return Step(float(norm), cosine) if finite else None

    def _cosine(self, gradients: list[Tensor], norm: Tensor) -> float | None:
        """Cosine between this gradient and the last, which it replaces; None if either is 0 or none was."""
        before, self._previous = self._previous, [g.detach().clone() for g in gradients]
        lengths = float(norm * whole(torch.nn.utils.get_total_norm(before))) if before else 0.0
        if not lengths:
            return None
        dot = sum(float(whole((a * b).sum())) for a, b in zip(before, gradients, strict=True))
        return min(1.0, max(-1.0, dot / lengths))

    def _warmup(self, version: int) -> float:
        return min(1.0, (version + 1) / max(1, self.config.warmup_updates))

    def _culprit(self) -> str:
        """First parameter whose gradient is not finite."""
        for name, parameter in self.parameters.items():
            if parameter.grad is not None and not torch.isfinite(whole(parameter.grad)).all():
                return name
        return "the whole (its norm overflows)"

    def state_dict(self) -> dict:
        """Moments, loss scale and last gradient; the learning rate follows from the version."""
        return {
            "adamw": self._adamw.state_dict(),
            "scaler": self._scaler.state_dict(),
            "previous": self._previous,
        }

    def load_state_dict(self, state: dict) -> None:
        """Go on from a `state_dict`, whose tensors are whole."""
        self._adamw.load_state_dict(self._cut(state["adamw"]))
        self._scaler.load_state_dict(state["scaler"])
        previous = state["previous"]
        if self._ranks.sharded and previous is not None:
            previous = [part_like(g, p) for g, p in zip(previous, self.parameters.values(), strict=True)]
        self._previous = previous

    def _cut(self, adamw: dict) -> dict:
        """Moments as this rank holds them."""
        if not self._ranks.sharded:
            return adamw
        moments = {
            i: {
                name: part_like(value, parameter) if value.shape == parameter.shape else value
                for name, value in adamw["state"][i].items()
            }
            for i, parameter in enumerate(self.parameters.values())
            if i in adamw["state"]
        }
        return adamw | {"state": moments}
