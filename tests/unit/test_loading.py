"""Models that several threads load at once, as those of mode `async` do."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from transformers import LlamaConfig, LlamaForCausalLM

from async_rollout.learner.characters import build_tokenizer
from async_rollout.policy.causal_lm import CausalLMPolicy
from tiny_policy import run_config


def test_threads_that_load_at_once_find_every_weight(tmp_path: Path) -> None:
    """Tied ones too: without our lock, transformers misses `lm_head.weight` again and again."""
    tokenizer = build_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    tied = LlamaConfig(
        vocab_size=len(tokenizer), tie_word_embeddings=True, eos_token_id=tokenizer.eos_token_id, **small
    )
    LlamaForCausalLM(tied).save_pretrained(tmp_path)
    config = run_config(model={"id": str(tmp_path)})
    with ThreadPoolExecutor(4) as threads:
        policies = list(threads.map(lambda _: CausalLMPolicy.load(config, "cpu"), range(20)))
    assert {name for policy in policies for name in policy.parameters()} == set(policies[0].parameters())
