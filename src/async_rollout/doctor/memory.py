"""How much memory a run will take: an estimate to be warned by, on the high side.

What a micro-batch holds was measured with torch's profiler on models of several shapes, and
tests/unit/test_memory.py measures it again. Not counted: what an allocator keeps without using it
(10 to 20 % on a GPU) and what kernels of a GPU need for themselves.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import psutil
import torch

from async_rollout.config.axes import OVERLAPPING
from async_rollout.config.run import RunConfig
from async_rollout.doctor.finding import Finding, judged
from async_rollout.doctor.probe import Probe
from async_rollout.doctor.shape import Shape
from async_rollout.policy.kv_cache import BLOCK

_PROCESS = 450 << 20  # bytes of a process that has imported torch and transformers
_CONTEXT = 500 << 20  # bytes that a process takes on a GPU before its first tensor
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_HEAD = 20  # bytes a position and word of the vocabulary: logits, softmax, entropy, and their gradients
_DRAW = 32  # bytes a slot and word of the vocabulary: logits and their sums in float64


@dataclass(frozen=True, slots=True)
class Prompts:
    """Tokens of the shortest and the longest prompt."""

    shortest: int
    longest: int


def memory_check(probe: Probe, runs: Sequence[RunConfig]) -> Finding:
    """The largest estimate of these runs of one model, by device, against what is free here now."""
    model = getattr(probe.policy, "model", None)
    shape = None if model is None else Shape.of(model)
    lengths = [len(t.prompt_ids) for t in probe.trajectories]
    needs: Counter[str] = Counter()
    for run in runs:
        needs |= Counter(estimate(run, shape, Prompts(min(lengths), max(lengths))))
    parts, enough = [], True
    for device, need in needs.items():
        free = _free(device)
        enough &= need <= free
        parts.append(f"{device} about {need / 2**30:.1f} GiB of {free / 2**30:.1f} GiB free")
    return judged("memory", enough, "; ".join(parts))


def estimate(run: RunConfig, shape: Shape | None, prompts: Prompts) -> dict[str, int]:
    """Bytes by device of one run, all its processes together; no shape: a backend without a model."""
    needs: Counter[str] = Counter({"cpu": 2 * _PROCESS})  # controller and judge
    weights = 0 if shape is None else shape.values * _BYTES[run.model.dtype]
    trainer = 0 if shape is None else trainer_memory(run, shape, prompts)
    decoding = 0 if shape is None else decoding_memory(run, shape, prompts.longest)
    for rank in range(run.train.workers):
        device = run.train.devices[rank % len(run.train.devices)]
        needs[device] += trainer + _context(device)
        needs["cpu"] += weights * (device != "cpu" and rank == 0)  # a snapshot on its way to the disk
    if run.mode not in OVERLAPPING:
        needs[run.train.devices[0]] += decoding
        return dict(needs)
    needs["cpu"] += 2 * weights  # the two buffers of the weight store
    if run.mode == "areal":
        needs["cpu"] += (run.train.workers + run.rollout.workers) * _PROCESS
    for worker in range(run.rollout.workers):
        device = run.rollout.devices[worker % len(run.rollout.devices)]
        needs[device] += weights + decoding + _context(device)
    return dict(needs)


def trainer_memory(run: RunConfig, shape: Shape, prompts: Prompts) -> int:
    """Of one trainer worker: weights, gradient and moments of policy and critic, and a micro-batch."""
    size = _BYTES[run.model.dtype]
    critic = shape.backbone if run.advantage.name == "gae" else 0
    frozen = run.kl.coef > 0 and run.kl.reference == "initial"
    kept = (3 + frozen + run.train.gradient_cosine) * shape.values + 3 * critic
    kept += max(shape.values, critic)  # one gradient at a time
    micro = micro_batch_memory(run, shape, prompts)
    if run.train.parallel == "replicate" or run.train.workers == 1:
        return kept * size + micro
    # What lies outside of the layers and two of these are gathered, and their gradients not yet scattered.
    gathered = 2 * (shape.outside + 2 * (shape.values - shape.outside) // shape.layers)
    return kept * size // run.train.workers + gathered * size + micro


def micro_batch_memory(run: RunConfig, shape: Shape, prompts: Prompts) -> int:
    """Of one forward and backward of `train.microbatch_tokens`; short prompts leave most to the head."""
    compute = _BYTES[run.model.dtype if run.model.autocast == "none" else run.model.autocast]
    width = prompts.shortest + run.sampling.max_new_tokens
    rows = max(1, run.train.microbatch_tokens // width)
    tokens = max(rows * width, prompts.longest + run.sampling.max_new_tokens)
    layer = tokens * (compute * (4 * shape.mlp + 4 * shape.heads + width) + 32 * shape.width)
    head = rows * (run.sampling.max_new_tokens + 1) * shape.vocabulary * _HEAD
    casts = 0 if run.model.autocast == "none" else shape.values * compute
    if run.train.gradient_checkpointing:
        return casts + shape.layers * tokens * 4 * shape.width + max(13 * layer // 10, head)
    return casts + shape.layers * layer + max(2 * layer // 5, head)


def decoding_memory(run: RunConfig, shape: Shape, longest: int) -> int:
    """Of one engine beside its weights: its cache, a prefill, and what tokens are drawn from."""
    size = _BYTES[run.model.dtype]
    columns = longest + run.sampling.max_new_tokens
    columns = -(-max(columns + BLOCK, 5 * columns // 4) // BLOCK) * BLOCK
    cache = run.slots * columns * shape.cached * size
    moved = cache // (2 * shape.layers)  # the new storage of a layer's keys, beside the old
    prefill = run.rollout.prefill_tokens * (3 * shape.mlp + 4 * shape.heads + 8 * shape.width) * size
    return cache + max(moved, prefill, run.slots * shape.vocabulary * _DRAW)


def _context(device: str) -> int:
    return 0 if device == "cpu" else _CONTEXT


def _free(device: str) -> int:
    return psutil.virtual_memory().available if device == "cpu" else torch.cuda.mem_get_info(device)[0]
