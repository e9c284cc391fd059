"""One call of a Hugging Face causal LM in this project's layout.

Masks are four-dimensional and positions explicit, so the model derives neither from
padding; the language-model head runs only on the last positions that are asked for.
"""

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import Cache


class Forward:
    """Calls one model (or backbone); the weights it sees are always the model's current ones."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self.device = model.device
        self._additive = model.config._attn_implementation == "eager"  # sdpa takes booleans

    def __call__(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        visible: torch.Tensor,
        *,
        keep: int,
        cache: Cache | None = None,
    ) -> torch.Tensor:
        """Logits (n, keep, V) of the last `keep` positions.

        ids, positions: (n, T); visible: (n, 1, T, keys), keys = T or what the cache returns.
        """
        output = self.model(
            input_ids=ids,
            position_ids=positions,
            attention_mask=self._mask(visible),
            cache=cache,
            use_cache=cache is not None,
            logits_to_keep=keep,
        )
        return output.logits

    def hidden(self, ids: torch.Tensor, positions: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        """Last hidden states (n, T, width) of a model without head; arguments as for a call."""
        return self.model(
            input_ids=ids, position_ids=positions, attention_mask=self._mask(visible), use_cache=False
        ).last_hidden_state

    def _mask(self, visible: torch.Tensor) -> torch.Tensor:
        if not self._additive:
            return visible
        dtype = self.model.dtype
        return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill_(
            ~visible, torch.finfo(dtype).min
        )
