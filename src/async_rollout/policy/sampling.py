"""From logits and one uniform number to a token and its log-probability.

The log-probability is always that of softmax(logits / temperature) over the full
vocabulary, the distribution that the loss differentiates, also when top-k, top-p or
greedy decoding choose from a part of it.
"""

from dataclasses import dataclass

import numpy as np
import torch


class NonFiniteLogit(FloatingPointError):
    """A logit is NaN or infinite; `row` says for which sample of the batch."""

    def __init__(self, row: int, token: int, value: float) -> None:
        super().__init__(f"logit of token {token} is {value}")
        self.row = row


@dataclass(frozen=True, slots=True)
class Sampler:
    """How one token is chosen."""

    temperature: float = 1.0
    top_k: int = 0  # 0: off
    top_p: float = 1.0
    greedy: bool = False

    def draw(self, logits: torch.Tensor, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tokens (n,) int32 and log-probabilities (n,) float32 for logits (n, V) and uniforms (n,).

        Inverse CDF in float64, so that rounding never decides between tokens. Raises NonFiniteLogit.
        """
        logits = logits.float()
        logprobs = torch.log_softmax(logits / self.temperature, dim=-1)
        if self.greedy:
            tokens = logprobs.argmax(dim=-1, keepdim=True)
        else:
            cdf = self._weights(logprobs).cumsum(dim=-1)
            below = torch.from_numpy(uniforms).to(cdf.device)[:, None] * cdf[:, -1:]
            # Only NaN can reach V here: a uniform stays one rounding step below 1.
            tokens = torch.searchsorted(cdf, below, right=True).clamp_(max=logits.shape[-1] - 1)
        chosen = logprobs.gather(-1, tokens)
        # One transfer: tokens and log-probabilities fit a double; a row's sum is finite iff its logits are.
        columns = (tokens, chosen, logits.sum(dim=-1, keepdim=True))
        drawn = torch.cat([c.double() for c in columns], dim=-1).cpu().numpy()
        if not np.isfinite(drawn[:, 2]).all():
            raise _name_non_finite(logits)
        return drawn[:, 0].astype(np.int32), drawn[:, 1].astype(np.float32)

    def _weights(self, logprobs: torch.Tensor) -> torch.Tensor:
        """Unnormalised float64 probabilities of the tokens that may be drawn."""
        weights = logprobs.double().exp()
        if not self.top_k and self.top_p == 1.0:
            return weights
        ordered, order = weights.sort(dim=-1, descending=True, stable=True)
        if self.top_k:
            ordered[:, self.top_k :] = 0
        if self.top_p < 1.0:
            before = ordered.cumsum(dim=-1) - ordered
            ordered = torch.where(before < self.top_p * ordered.sum(dim=-1, keepdim=True), ordered, 0)
        return torch.zeros_like(weights).scatter_(-1, order, ordered)


def _name_non_finite(logits: torch.Tensor) -> NonFiniteLogit:
    row, token = (~torch.isfinite(logits)).nonzero()[0].tolist()
    return NonFiniteLogit(row, token, float(logits[row, token]))
