"""A random causal language model small enough for a unit test, in the real `causal_lm` backend."""

from types import SimpleNamespace

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from async_rollout.config.run import RunConfig
from async_rollout.policy.causal_lm import CausalLMPolicy

VOCABULARY = 23


def tiny_policy(config: RunConfig, *, stop_ids: set[int], pad_id: int, seed: int = 0) -> CausalLMPolicy:
    """Two layers of width 16; special ids as given."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(
            Qwen2Config(
                vocab_size=VOCABULARY,
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                num_key_value_heads=1,
                intermediate_size=32,
                tie_word_embeddings=True,
                initializer_range=0.3,
                pad_token_id=None,
                bos_token_id=None,
                eos_token_id=None,
            )
        )
    codec = SimpleNamespace(stop_ids=frozenset(stop_ids), pad_id=pad_id)
    return CausalLMPolicy(model, codec, config)
