"""The `causal_lm` backend: any full-attention Hugging Face causal language model.

All that drops out is in eval mode for ever, so that two scores of one policy never differ.
"""

import threading
from pathlib import Path
from typing import Self

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from async_rollout.config.run import RunConfig
from async_rollout.policy import scoring
from async_rollout.policy.codec import TokenizerCodec
from async_rollout.policy.engine import DecodingEngine
from async_rollout.policy.forward import Forward
from async_rollout.policy.interface import Codec, Scores, ScoringBatch
from async_rollout.policy.layout_check import check_layout, refuse_unfit
from async_rollout.policy.recompute import recompute_activations
from async_rollout.policy.sampling import Sampler
from async_rollout.policy.turns import Turns
from async_rollout.policy.value import BackboneValue

# transformers builds a model under settings of the whole process (default dtype, no initialization, tying):
# of two threads that load at once, as those of mode `async` do, one finds a tied weight missing.
_LOADING = threading.Lock()


class CausalLMPolicy:
    """Policy (see interface.py) over one model in memory."""

    def __init__(self, model: PreTrainedModel, codec: Codec, config: RunConfig) -> None:
        refuse_unfit(model, config.model.id)
        self.codec = codec
        self.model = model.eval()
        self._config = config
        self._forward = Forward(model)
        self._autocast = None if config.model.autocast == "none" else getattr(torch, config.model.autocast)
        check_layout(self._forward, config.model.id)
        if config.train.gradient_checkpointing:
            recompute_activations(model, config.model.id)

    @classmethod
    def load(cls, config: RunConfig, device: str) -> Self:
        """From a local directory or a hub id. Raises ValueError if weights are missing there."""
        source = config.model
        with _LOADING:
            model, loading = AutoModelForCausalLM.from_pretrained(
                source.id,
                dtype=getattr(torch, source.dtype),
                attn_implementation=source.attn_implementation,
                trust_remote_code=source.trust_remote_code,
                output_loading_info=True,
            )
        if loading["missing_keys"]:
            missing = ", ".join(sorted(loading["missing_keys"]))
            raise ValueError(f"model.id = {source.id}: no weights for {missing}; they would be random")
        return cls(model.to(device), TokenizerCodec.load(source.id, source.trust_remote_code), config)

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """Trainable parameters by name, tied ones once."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def score(self, batch: ScoringBatch, temperature: float) -> Scores:
        """Log-probabilities of the responses under the current weights."""
        return scoring.score(self._forward, batch, temperature, self._autocast)

    def value_model(self, *, freeze_attention: bool) -> BackboneValue:
        """A copy of the model's backbone with a scalar head."""
        return BackboneValue(self.model, self._autocast, freeze_attention=freeze_attention)

    def engine(self, *, slots: int, seed: int, version: int, greedy: bool = False) -> DecodingEngine:
        """A fresh decoding engine over this policy's weights."""
        sampling = self._config.sampling
        return DecodingEngine(
            self._forward,
            slots=slots,
            seed=seed,
            version=version,
            sampler=Sampler(sampling.temperature, sampling.top_k, sampling.top_p, greedy),
            stop_ids=self.codec.stop_ids,
            observe=Turns(self.codec),
            prefill_tokens=self._config.rollout.prefill_tokens,
        )

    def save(self, directory: Path) -> None:
        """Write model and tokenizer in Hugging Face format."""
        self.model.save_pretrained(directory)
        self.codec.tokenizer.save_pretrained(directory)
