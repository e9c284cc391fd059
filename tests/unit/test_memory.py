"""The memory estimate: held to what torch allocates, to the configurations, and to the page that tells it."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM, Qwen2Config

from async_rollout.config.run import RunConfig
from async_rollout.doctor import table
from async_rollout.doctor.architectures import architecture
from async_rollout.doctor.memory import Prompts, decoding_memory, estimate, micro_batch_memory
from async_rollout.doctor.shape import Shape
from async_rollout.policy import scoring
from async_rollout.policy.forward import Forward
from async_rollout.policy.interface import ScoringBatch
from async_rollout.policy.recompute import recompute_activations
from async_rollout.policy.value import BackboneValue
from tiny_policy import drain, run_config, sample_requests, tiny_model, tiny_policy

PROMPT, RESPONSE, ROWS = 32, 96, 8
SHAPES = {"wide": (128, 512, 4, 128), "wordy": (64, 128, 2, 16_384)}  # width, MLP, layers, vocabulary


def allocated(work: Callable[[], object]) -> int:
    """Largest number of bytes that `work` held at once, by torch's own account."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        work()
    changes = [e.nbytes() for e in profiled.profiler.kineto_results.events() if e.name() == "[memory]"]
    return int(np.cumsum(changes).max())


def batch() -> ScoringBatch:
    prompts, responses = (np.zeros((ROWS, width), np.int64) for width in (PROMPT, RESPONSE))
    return ScoringBatch(prompts, prompts == 0, responses, responses == 0)


def run_of(autocast: str, checkpointing: bool) -> RunConfig:
    return run_config(
        model={"autocast": autocast},
        train={"microbatch_tokens": ROWS * (PROMPT + RESPONSE), "gradient_checkpointing": checkpointing},
        sampling={"max_new_tokens": RESPONSE},
    )


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("autocast", ["none", "bfloat16"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_micro_batch_takes_what_is_estimated(name: str, autocast: str, checkpointing: bool) -> None:
    width, mlp, layers, vocabulary = SHAPES[name]
    model = AutoModelForCausalLM.from_config(
        Qwen2Config(
            vocab_size=vocabulary, hidden_size=width, intermediate_size=mlp, num_hidden_layers=layers,
            num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
        ),
        attn_implementation="sdpa",
    ).eval()  # fmt: skip
    if checkpointing:
        recompute_activations(model, name)
    half = None if autocast == "none" else torch.bfloat16
    forward, value = Forward(model), BackboneValue(model, half, freeze_attention=False)

    def policy_step() -> None:
        scoring.score(forward, batch(), 1.0, half).logprobs.sum().backward()

    def critic_step() -> None:
        value.values(batch()).sum().backward()

    estimated = micro_batch_memory(run_of(autocast, checkpointing), Shape.of(model), Prompts(PROMPT, PROMPT))
    for step in (policy_step, critic_step):
        step()  # from then on there is a gradient, as for all micro-batches but a minibatch's first
    assert allocated(critic_step) <= estimated
    assert allocated(policy_step) <= estimated <= 1.35 * allocated(policy_step)


def test_the_cache_takes_what_is_estimated() -> None:
    policy = tiny_policy(stop_ids=())
    run = run_config(rollout={"slots": 16, "prefill_tokens": 16}, sampling={"max_new_tokens": 150})
    engine = policy.engine(slots=16, seed=0, version=0)
    requests = sample_requests(32, longest=150, shortest=150)
    drain(engine, requests)
    cache = engine._cache
    held = sum(tensor.nbytes for tensor in (*cache._keys, *cache._values))
    longest = max(len(request.prompt_ids) for request in requests)
    assert held <= decoding_memory(run, Shape.of(policy.model), longest) <= 2 * held


def test_shapes_are_those_of_the_hub() -> None:
    half = Shape.of_config(architecture("Qwen/Qwen2.5-0.5B-Instruct"))
    assert (half.values, half.layers, half.cached) == (494_032_768, 24, 2 * 24 * 2 * 64)
    four = Shape.of_config(architecture("Qwen/Qwen3-4B-Instruct-2507"))
    assert (four.values, four.heads) == (4_022_468_096, 4096)
    assert Shape.of(tiny_model("gpt2")).mlp == 128


def test_what_takes_memory_counts() -> None:
    shape, prompts = Shape.of(tiny_model()), Prompts(4, 12)

    def needs(**blocks: object) -> dict[str, int]:
        return estimate(run_config(**blocks), shape, prompts)

    weights = 4 * shape.values
    base = needs()["cpu"]
    assert needs(train={"gradient_cosine": True})["cpu"] - base == weights
    assert needs(kl={"coef": 0.1, "reference": "initial"})["cpu"] - base == weights
    critic = needs(algorithm="sao", advantage={"name": "gae"}, batch={"group_size": 1})["cpu"]
    alone = needs(algorithm="single_dis", advantage={"name": "batch"}, batch={"group_size": 1})["cpu"]
    assert critic - alone == 3 * 4 * shape.backbone
    areal = {"mode": "areal", "k": 1}
    assert needs(**areal)["cpu"] > base
    assert needs(**areal, rollout={"workers": 3})["cpu"] > needs(**areal)["cpu"]
    far = needs(**areal, rollout={"devices": ["cuda:0"]}, train={"devices": ["cuda:1"]})
    assert far["cuda:1"] > far["cuda:0"] > weights
    shards = {"workers": 4, "devices": ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]}
    half = Shape.of_config(architecture("Qwen/Qwen2.5-0.5B-Instruct"))
    whole, shard = (
        estimate(run_config(**areal, train={**shards, "parallel": how}), half, prompts)["cuda:3"]
        for how in ("replicate", "fsdp2")
    )
    assert whole - shard > 2 * 4 * half.values  # of 16 bytes a parameter 4 stay, and some are gathered


def test_the_configurations_fit_the_gpus_that_they_name_and_the_page_says_so() -> None:
    assert all(need.fits for need in table.needs())
    assert table.table() == table.PAGE.read_text(encoding="utf-8").partition(table.MARK)[2].lstrip()
    for config, size in table.GPUS.items():
        comment = table.Path(f"config/{config}.yaml").read_text(encoding="utf-8").partition("experiment:")[0]
        assert f"{size} GB" in comment
