"""How much memory a run will take, roughly: an estimate to be warned by, not a measurement."""

import psutil
import torch

from async_rollout.config.axes import OVERLAPPING
from async_rollout.doctor.finding import Finding, judged
from async_rollout.doctor.probe import Probe

_PROCESS = 450 << 20  # bytes of a process that has imported torch and transformers
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def memory_check(probe: Probe) -> Finding:
    """The estimate by device against what is free on this machine now."""
    needs = estimate(probe)
    parts, enough = [], True
    for device, need in needs.items():
        free = _free(device)
        enough &= need <= free
        parts.append(f"{device} about {need / 2**30:.1f} GiB of {free / 2**30:.1f} GiB free")
    return judged("memory", enough, "; ".join(parts))


def estimate(probe: Probe) -> dict[str, int]:
    """Bytes by device of one run, all its processes together."""
    run = probe.run
    size = _BYTES[run.model.dtype]
    values = sum(p.numel() for p in probe.policy.parameters().values())
    width, layers, vocabulary, cached = _shape(probe)
    longest = max(len(t.prompt_ids) for t in probe.trajectories) + run.sampling.max_new_tokens
    copies = 4 + (run.kl.coef > 0 and run.kl.reference == "initial") + run.train.gradient_cosine
    # float32 logits, their softmax and gradient; about 16 activations of the width a token and layer
    training = copies * values * size + run.train.microbatch_tokens * (
        12 * vocabulary + 16 * layers * width * size
    )
    decoding = run.slots * (longest * cached * size + 8 * vocabulary)
    needs = {"cpu": 2 * _PROCESS, run.train.devices[0]: 0} | dict.fromkeys(run.rollout.devices, 0)
    needs[run.train.devices[0]] += training
    if run.mode not in OVERLAPPING:
        needs[run.train.devices[0]] += decoding
        return {device: need for device, need in needs.items() if need}
    needs["cpu"] += 2 * values * size  # two buffers of weights
    if run.mode == "areal":
        needs["cpu"] += (1 + run.rollout.workers) * _PROCESS
    for worker in range(run.rollout.workers):
        needs[run.rollout.devices[worker % len(run.rollout.devices)]] += values * size + decoding
    return needs


def _shape(probe: Probe) -> tuple[int, int, int, int]:
    """Width, layers, vocabulary, and cached values a token; zeros for backends without a model."""
    model = getattr(probe.policy, "model", None)
    if model is None:
        return 0, 0, 0, 0
    config = model.config.get_text_config()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    layers = config.num_hidden_layers
    return config.hidden_size, layers, config.vocab_size, 2 * layers * heads * head


def _free(device: str) -> int:
    return psutil.virtual_memory().available if device == "cpu" else torch.cuda.mem_get_info(device)[0]
