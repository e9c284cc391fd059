"""A value model: a causal language model's backbone and a scalar head on its last hidden states.

Always: it shares no memory with the policy that it was copied from; like the policy's, its dropout
is in eval mode for ever; the head starts at 0, so before any training every value is 0.
"""

import copy

import torch
from transformers import PreTrainedModel

from async_rollout.policy import masks
from async_rollout.policy.forward import Forward
from async_rollout.policy.interface import ScoringBatch


class BackboneValue(torch.nn.Module):
    """ValueModel (see interface.py) of a Hugging Face model."""

    def __init__(
        self, model: PreTrainedModel, autocast: torch.dtype | None = None, *, freeze_attention: bool
    ) -> None:
        super().__init__()
        self.backbone = copy.deepcopy(model.base_model)
        width = model.config.get_text_config().hidden_size
        self.head = torch.nn.Linear(width, 1, device=model.device, dtype=torch.float32)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)
        self._forward = Forward(self.backbone)
        self._autocast = autocast
        if freeze_attention:
            self._freeze_attention()

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """Trainable parameters by name."""
        return {name: p for name, p in self.named_parameters() if p.requires_grad}

    def values(self, batch: ScoringBatch) -> torch.Tensor:
        """(n, L + 1) float32: V_t at the position that predicts response token t, then the end's."""
        device = self._forward.device
        prompt_ids, prompt_mask, response_ids, response_mask = (
            torch.from_numpy(array).to(device)
            for array in (batch.prompt_ids, batch.prompt_mask, batch.response_ids, batch.response_mask)
        )
        real = torch.cat([prompt_mask, response_mask], dim=1)
        ids = torch.cat([prompt_ids, response_ids], dim=1)
        with torch.autocast(device.type, dtype=self._autocast, enabled=self._autocast is not None):
            states = self._forward.hidden(ids, masks.positions(real), masks.causal(real))
        return self.head(states[:, -response_ids.shape[1] - 1 :].float())[..., 0]

    def _freeze_attention(self) -> None:
        """Attention layers are found by name, as in `layers.0.self_attn.q_proj.weight`; norms stay free."""
        found = [
            p
            for name, p in self.backbone.named_parameters()
            if any(part.endswith(("attn", "attention")) for part in name.split("."))
        ]
        if not found:
            raise ValueError(
                "critic.freeze_attention: true, but the model names no layer `attn` or `attention`"
            )
        for parameter in found:
            parameter.requires_grad_(False)
