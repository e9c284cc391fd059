"""Log-ratios of two policies, made safe once for every objective.

Always: outside the mask a log-ratio is 0, so nothing there is ever exponentiated; inside, it
saturates at ±20 with gradient 0 beyond, and saturations are marked; what is not finite raises.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

LIMIT = 20.0


class NonFiniteError(ArithmeticError):
    """A number that training depends on is NaN or infinite; the message names it."""


@dataclass(frozen=True, slots=True)
class LogRatio:
    """log(p/q) per token, in float32 or wider."""

    value: Tensor  # (n, L), within ±LIMIT, 0 outside the mask
    saturated: Tensor  # (n, L) bool

    @property
    def ratio(self) -> Tensor:
        """p/q, 1 outside the mask."""
        return self.value.exp()


def log_ratio(over: Tensor, under: Tensor, mask: Tensor, *, names: tuple[str, str]) -> LogRatio:
    """log p − log q of the tokens in the mask.

    Args: `over` = log p and `under` = log q, (n, L); `mask` (n, L) bool; `names` of p and q.
    Raises NonFiniteError if a log-ratio in the mask is NaN or infinite.
    """
    wide = torch.promote_types(torch.promote_types(over.dtype, under.dtype), torch.float32)
    difference = torch.where(mask, over.to(wide) - under.to(wide), 0.0)
    require_finite(difference, f"log {names[0]}/{names[1]}", {names[0]: over, names[1]: under}, mask)
    saturated = difference.detach().abs() > LIMIT
    return LogRatio(difference.clamp(-LIMIT, LIMIT), saturated)


def require_finite(values: Tensor, name: str, parts: dict[str, Tensor], mask: Tensor) -> None:
    """Raise NonFiniteError naming `name`, and which of its parts is to blame, unless all is finite."""
    bad = int((~torch.isfinite(values)).sum())
    if not bad:
        return
    blame = [f"log {k}" for k, v in parts.items() if not torch.isfinite(v[mask]).all()]
    detail = f" (not finite: {', '.join(blame)})" if blame else ""
    raise NonFiniteError(f"{name} is not finite for {bad} of {int(mask.sum())} tokens{detail}")
