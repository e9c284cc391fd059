"""Combinations of keys that cannot be run, each with its reason and the way out.

Shared by a sweep, each of its arms, and a single run: whoever holds the blocks is checked.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from async_rollout.config.errors import Problem

if TYPE_CHECKING:
    from async_rollout.config.run import Blocks


def broken_rules(blocks: "Blocks") -> list[Problem]:
    """Every rule that these blocks break."""
    rules = (_batch, _critic, _sampling, _shape, _train, _trainers)
    return [problem for rule in rules for problem in rule(blocks)]


def misnamed(algorithm: str, blocks: "Blocks") -> Iterator[Problem]:
    """Blocks that are another algorithm than their name says: tables would compare what is not there."""
    size = blocks.batch.group_size
    if algorithm.startswith("grpo") and size < 2:
        yield Problem(
            "batch.group_size",
            size,
            f"{algorithm} compares the samples of one prompt; with one sample it is no GRPO",
            "list the algorithm by its name: single_dis (batch advantages) or running_mean",
        )
    if algorithm in ("single_dis", "sao") and size > 1:
        yield Problem(
            "batch.group_size",
            size,
            f"{algorithm} draws one sample a prompt",
            "leave batch.group_size out, and raise batch.groups for more samples; or use grpo_dis",
        )
    if algorithm == "sao" and blocks.advantage.name != "gae":
        yield Problem(
            "advantage.name",
            blocks.advantage.name,
            "sao learns from a critic; without it, it is another algorithm",
            "leave advantage.name out; or use single_dis or running_mean",
        )


def _batch(blocks: "Blocks") -> Iterator[Problem]:
    batch = blocks.batch
    if blocks.advantage.name == "group" and batch.group_size < 2:
        yield Problem(
            "batch.group_size",
            batch.group_size,
            "group advantages compare the samples of one prompt and need G >= 2",
            "set batch.group_size to 2 or more, or use an algorithm of single rollouts (single_dis, "
            "running_mean)",
        )
    samples = batch.groups * batch.group_size
    if batch.minibatches > samples:
        yield Problem(
            "batch.minibatches",
            batch.minibatches,
            f"a batch has only {samples} samples (batch.groups {batch.groups} x "
            f"batch.group_size {batch.group_size}), and a minibatch needs at least one",
            f"set batch.minibatches to {samples} or less, or raise batch.groups",
        )


def _critic(blocks: "Blocks") -> Iterator[Problem]:
    if blocks.advantage.name != "gae":
        return
    if blocks.model.backend != "causal_lm":
        yield Problem(
            "model.backend",
            blocks.model.backend,
            "has no backbone for the critic that advantage.name gae needs",
            "causal_lm, or another advantage.name",
        )
    if blocks.critic.warmup_updates >= blocks.train.updates:
        yield Problem(
            "critic.warmup_updates",
            blocks.critic.warmup_updates,
            f"the policy would not be trained in any of the {blocks.train.updates} updates",
            "set critic.warmup_updates below train.updates",
        )


def _sampling(blocks: "Blocks") -> Iterator[Problem]:
    sampling = blocks.sampling
    if sampling.allow_biased:
        return
    for name, off in (("top_p", 1.0), ("top_k", 0)):
        if (value := getattr(sampling, name)) != off:
            yield Problem(
                f"sampling.{name}",
                value,
                "samples would come from another distribution than the one the loss differentiates",
                f"set sampling.{name}: {off}, or accept it with sampling.allow_biased: true",
            )


def _shape(blocks: "Blocks") -> Iterator[Problem]:
    model = blocks.warm_start
    if model.hidden_size % (2 * model.heads):
        yield Problem(
            "warm_start.hidden_size",
            model.hidden_size,
            f"each of the {model.heads} heads needs an equal and even share (rotary positions)",
            f"a multiple of {2 * model.heads}, or another warm_start.heads",
        )
    if model.heads % model.kv_heads:
        yield Problem(
            "warm_start.kv_heads",
            model.kv_heads,
            f"does not divide warm_start.heads ({model.heads})",
            f"a divisor of {model.heads}",
        )


def _train(blocks: "Blocks") -> Iterator[Problem]:
    train = blocks.train
    if len(train.devices) > train.workers:
        yield Problem(
            "train.devices",
            train.devices,
            f"lists {len(train.devices)} devices for {train.workers} trainer workers",
            f"list {train.workers}, or set train.workers: {len(train.devices)} (mode areal)",
        )
    if blocks.optim.warmup_updates > blocks.train.updates:
        yield Problem(
            "optim.warmup_updates",
            blocks.optim.warmup_updates,
            f"the run has only {blocks.train.updates} updates and never reaches optim.lr",
            "set optim.warmup_updates to train.updates or less",
        )


def _trainers(blocks: "Blocks") -> Iterator[Problem]:
    """What a group of trainers needs: gloo sums on CPUs, nccl on GPUs, and nccl wants each rank its own."""
    train = blocks.train
    used = ["cuda:0" if d == "cuda" else d for d in train.devices]
    if len({d.partition(":")[0] for d in used}) > 1:
        yield Problem(
            "train.devices",
            train.devices,
            "trainers add up their gradients on devices of one kind",
            "list only cpu, or only cuda devices",
        )
    elif used[0] != "cpu" and len(set(used)) < train.workers:
        yield Problem(
            "train.devices",
            train.devices,
            f"{train.workers} trainers need a GPU each: nccl cannot add up over two ranks on one",
            f"list {train.workers} different devices, or set train.workers: {len(set(used))}",
        )
    if train.parallel != "fsdp2":
        return
    if blocks.model.backend != "causal_lm":
        yield Problem(
            "train.parallel",
            train.parallel,
            f"model.backend {blocks.model.backend} has no layers to cut into parts",
            "replicate, or model.backend: causal_lm",
        )
    if blocks.model.autocast == "float16":
        yield Problem(
            "train.parallel",
            train.parallel,
            "the loss scaling that model.autocast float16 needs is not there for parts of gradients",
            "model.autocast: bfloat16, or train.parallel: replicate",
        )
