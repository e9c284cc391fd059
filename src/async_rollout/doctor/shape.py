"""The sizes of a model that decide how much memory it takes; nothing of its weights is loaded."""

import copy
from dataclasses import dataclass
from typing import Self

import torch
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedModel


@dataclass(frozen=True, slots=True)
class Shape:
    """A causal language model; numbers of values, not bytes."""

    values: int  # of all parameters, tied ones once
    backbone: int  # of those without the language-model head: what a critic copies
    outside: int  # of those outside of the layers: embeddings, last norm, head
    layers: int
    width: int
    heads: int  # values of all query heads together
    cached: int  # keys and values of one token, all layers
    mlp: int
    vocabulary: int

    @classmethod
    def of(cls, model: PreTrainedModel) -> Self:
        """Of a model, be it on the meta device."""
        config = model.config.get_text_config()
        layers, heads = config.num_hidden_layers, config.num_attention_heads
        head = getattr(config, "head_dim", None) or config.hidden_size // heads
        lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList)]
        values = _values(model)
        return cls(
            values=values,
            backbone=_values(model.base_model),
            outside=values - _values(max(lists, key=len)),
            layers=layers,
            width=config.hidden_size,
            heads=heads * head,
            cached=2 * layers * (getattr(config, "num_key_value_heads", None) or heads) * head,
            mlp=getattr(config, "intermediate_size", None) or 4 * config.hidden_size,
            vocabulary=config.vocab_size,
        )

    @classmethod
    def of_config(cls, config: PretrainedConfig) -> Self:
        """Of a model that is nowhere yet; takes no memory."""
        with torch.device("meta"):
            return cls.of(AutoModelForCausalLM.from_config(copy.deepcopy(config)))


def _values(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
