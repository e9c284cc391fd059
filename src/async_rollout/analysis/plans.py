"""What a cell was asked to be, from its resolved configuration: known before it has run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from async_rollout.config.cells import config_hash
from async_rollout.config.run import RunConfig

CORES, GPUS = "cores", "GPUs"


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of a resolved configuration that tables show of a missing cell too."""

    config_hash: str
    objective: str
    minibatches: int
    updates: int

    @classmethod
    def of(cls, run: RunConfig) -> Self:
        """The plan that `run` is."""
        return cls(config_hash(run), run.objective.name, run.batch.minibatches, run.train.updates)


class Compute(NamedTuple):
    """What a run computes with."""

    amount: int
    unit: str  # CORES, or GPUS if any of it is on a GPU

    def __str__(self) -> str:
        return f"{self.amount} {self.unit if self.amount != 1 else self.unit[:-1]}"


def compute_of(mode: str, config: Mapping[str, Any]) -> Compute:
    """Cores that compute at once, or distinct GPUs, by the `config` of a summary.

    A run of one process (`sync`, `lagged`) has the trainer's threads and device alone; `async` has two
    threads that compute, each with as many cores as `train.threads` says; `areal` those of
    all workers. Processes that only pass messages are not counted.
    """
    train, rollout = config.get("train", {}), config.get("rollout", {})
    devices = train.get("devices", ["cpu"])[:1] if mode in ("sync", "lagged") else _devices(train, rollout)
    gpus = {device for device in devices if device != "cpu"}
    if gpus:
        return Compute(len(gpus), GPUS)
    training = train.get("threads", 1)
    if mode in ("sync", "lagged"):
        return Compute(training, CORES)
    if mode == "async":
        return Compute(2 * training, CORES)
    sampling = rollout.get("workers", 1) * rollout.get("threads", 1)
    return Compute(sampling + train.get("workers", 1) * training, CORES)


def _devices(*blocks: Mapping[str, Any]) -> list[str]:
    return [device for block in blocks for device in block.get("devices", ["cpu"])]
