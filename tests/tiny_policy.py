"""Tiny random models and what tests of the policy need around them."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, PreTrainedModel, Qwen2Config

from async_rollout.config.run import RunConfig
from async_rollout.policy.causal_lm import CausalLMPolicy
from async_rollout.policy.engine import DecodingEngine
from async_rollout.types import SampleId, SampleRequest, Trajectory

VOCABULARY = 40
DEVICE = os.environ.get("ASYNC_ROLLOUT_TEST_DEVICE", "cpu")  # of the tests that `make gpu-check` repeats
STOP = 2


@dataclass(frozen=True)
class IdCodec:
    """For tests that speak in ids."""

    stop_ids: frozenset[int] = frozenset({STOP})
    pad_id: int = STOP

    def encode(self, prompt: str) -> np.ndarray:
        return np.array([int(word) for word in prompt.split()], dtype=np.int32)

    def encode_observation(self, text: str) -> np.ndarray:
        return self.encode(text)

    def decode(self, response_ids: Sequence[int]) -> str:
        return " ".join(str(i) for i in response_ids if i not in self.stop_ids)


def run_config(**blocks: dict) -> RunConfig:
    """A resolved cell; keyword arguments replace blocks."""
    return RunConfig.model_validate(
        {
            "experiment": "test", "dataset": "sort", "mode": "sync", "algorithm": "grpo", "arm": "",
            "k": 0, "decoupled": 1, "seed": 0, "objective": {"name": "decoupled"},
        }
        | blocks
    )  # fmt: skip


def tiny_model(kind: str = "qwen2", seed: int = 0) -> PreTrainedModel:
    """`qwen2` (rotary, two key-value heads), `qwen2-eager`, `llama-untied`, `gpt2` (positions, dropout)."""
    torch.manual_seed(seed)
    special = {"bos_token_id": None, "eos_token_id": STOP, "pad_token_id": STOP}
    if kind == "gpt2":
        config = GPT2Config(
            vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=2, n_positions=256, initializer_range=0.3,
            **special,
        )  # fmt: skip
    else:
        config = (LlamaConfig if kind.startswith("llama") else Qwen2Config)(
            vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, intermediate_size=48, tie_word_embeddings=not kind.endswith("untied"),
            initializer_range=0.3,
            max_position_embeddings=512, **special,
        )  # fmt: skip
    attention = "eager" if kind.endswith("eager") else "sdpa"
    return AutoModelForCausalLM.from_config(config, attn_implementation=attention).to(DEVICE)


def tiny_policy(kind: str = "qwen2", stop_ids: Sequence[int] = (STOP,), **blocks: dict) -> CausalLMPolicy:
    """A policy over a tiny model that speaks in ids."""
    return CausalLMPolicy(tiny_model(kind), IdCodec(frozenset(stop_ids)), run_config(**blocks))


def perturb(policy: CausalLMPolicy, seed: int) -> dict[str, torch.Tensor]:
    """Change all weights in place by noise of the seed; returns a copy of the new ones."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.parameters().values():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator).to(DEVICE)
    return snapshot(policy)


def snapshot(policy: CausalLMPolicy) -> dict[str, torch.Tensor]:
    """A copy of the weights."""
    return {name: p.detach().clone() for name, p in policy.parameters().items()}


def sample_requests(n: int, *, longest: int = 20, shortest: int = 1, seed: int = 0) -> list[SampleRequest]:
    """n requests in groups of 2, with prompts of 1 to 12 ids and various limits."""
    rng = np.random.default_rng(seed)
    prompts = [
        rng.integers(3, VOCABULARY, size=rng.integers(1, 13)).astype(np.int32) for _ in range(n // 2 + 1)
    ]
    limits = rng.integers(shortest, longest + 1, size=n)
    return [SampleRequest(SampleId(i // 2, i % 2), prompts[i // 2], int(limits[i])) for i in range(n)]


def drain(
    engine: DecodingEngine,
    requests: Sequence[SampleRequest],
    each_step: Callable[[int], None] = lambda step: None,
) -> dict[SampleId, Trajectory]:
    """Decode all requests, refilling slots as they become free; `each_step` runs before each step."""
    queue, finished, step = list(requests), {}, 0
    while queue or engine.running():
        free = engine.free_slots
        engine.submit(queue[:free])
        del queue[:free]
        each_step(step)
        finished |= {trajectory.id: trajectory for trajectory in engine.step()}
        step += 1
    return finished


@torch.no_grad()
def solo_logprobs(
    policy: CausalLMPolicy,
    trajectory: Trajectory,
    temperature: float = 1.0,
    weights: dict[str, torch.Tensor] | None = None,
) -> np.ndarray:
    """(L,) float64, by a plain forward of this sample alone: no mask, no cache, nothing of ours."""
    model = policy.model
    current = snapshot(policy)
    load(policy, weights or current)
    ids = torch.from_numpy(np.concatenate([trajectory.prompt_ids, trajectory.response_ids])).to(model.device)
    logits = model(input_ids=ids[None].long(), use_cache=False).logits[0].double().cpu().numpy()
    load(policy, current)
    logits = logits[len(trajectory.prompt_ids) - 1 : -1] / temperature
    top = logits.max(axis=1)
    chosen = logits[np.arange(len(logits)), trajectory.response_ids]
    return chosen - top - np.log(np.exp(logits - top[:, None]).sum(axis=1))


@torch.no_grad()
def load(policy: CausalLMPolicy, weights: dict[str, torch.Tensor]) -> None:
    """Put these weights into the policy, in place."""
    for name, parameter in policy.parameters().items():
        parameter.copy_(weights[name])
