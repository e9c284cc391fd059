"""What cells will take, judged by finished cells like them, or by a guess that is named as one.

A cell's time is scaled by the samples it trains; what it waits for beside that (set-up,
evaluation) is taken as it was. Which finished cells count as like it is said with every estimate.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Self

from async_rollout.config.run import RunConfig
from async_rollout.records.summary import Summary

_ROW_BYTES = 700  # of a sample's rows beside its text, where no finished cell tells


@dataclass(frozen=True, slots=True)
class Past:
    """One finished cell."""

    config: dict[str, Any]
    seconds: float  # of training
    beside: float  # seconds of set-up and evaluation
    bytes: int | None  # its directory; None where its rows are not there any more
    machine: str

    @classmethod
    def of(cls, summary: Summary, size: int | None) -> Self:
        """From a summary and the size of its directory. ValidationError if its keys are not today's."""
        return cls(
            config=RunConfig.model_validate(summary.config).model_dump(mode="json"),
            seconds=summary.wall_clock_sec,
            beside=summary.setup_wall_clock_sec + summary.evaluation_wall_clock_sec,
            bytes=size,
            machine=str(summary.machine.get("processor", "an unknown machine")),
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one cell will take."""

    seconds: float | None  # from start to summary; None where nothing tells
    bytes: int
    source: str  # what it rests on


def estimate(run: RunConfig, past: Sequence[Past], seconds_per_update: float | None = None) -> Estimate:
    """By the finished cells most like `run`, unless the seconds of an update are given."""
    config = run.model_dump(mode="json")
    alike, why = _alike(config, past)
    samples = _samples(config)
    sizes = [each.bytes / _samples(each.config) for each in alike if each.bytes is not None]
    row = median(sizes) if sizes else _ROW_BYTES + 4 * run.sampling.max_new_tokens
    size = round(row * samples)
    if seconds_per_update is not None:
        return Estimate(
            seconds_per_update * run.train.updates, size, f"at {seconds_per_update:g} s an update, as given"
        )
    if not alike:
        return Estimate(None, size, f"no finished cell of model {_model(config)} tells")
    seconds = median(each.seconds / _samples(each.config) for each in alike) * samples
    seconds += median(each.beside for each in alike)
    machines = sorted({each.machine for each in alike})
    more = f" and {len(machines) - 1} others" if len(machines) > 1 else ""
    return Estimate(seconds, size, f"as {len(alike)} finished cells of {why} took on {machines[0]}{more}")


def _alike(config: dict[str, Any], past: Iterable[Past]) -> tuple[list[Past], str]:
    """The finished cells that are most like it, and in what; none if none is like it at all."""
    past = list(past)
    for why, key in _LIKENESS:
        if found := [each for each in past if key(each.config) == key(config)]:
            return found, why
    return [], ""


def _samples(config: dict[str, Any]) -> int:
    return config["train"]["updates"] * config["batch"]["groups"] * config["batch"]["group_size"]


def _model(config: dict[str, Any]) -> str:
    model, embedded = config["model"], config["warm_start"]
    if model["backend"] != "causal_lm":
        return model["backend"]
    if model["id"] != "embedded":
        return model["id"]
    return f"embedded {embedded['hidden_size']}x{embedded['layers']}"


def _place(config: dict[str, Any]) -> tuple:
    """What decides about time first, whatever the mode: model, delays, kinds of device."""
    devices = [[d.partition(":")[0] for d in config[side]["devices"]] for side in ("train", "rollout")]
    return _model(config), config["stress"], devices


_Key = Callable[[dict[str, Any]], object]
_LIKENESS: tuple[tuple[str, _Key], ...] = (
    ("the same configuration but for seed and experiment", lambda c: c | {"seed": 0, "experiment": ""}),
    (
        "the same mode, model, dataset, length limit and algorithm",
        lambda c: (_place(c), c["mode"], c["dataset"], c["sampling"]["max_new_tokens"], c["algorithm"]),
    ),
    (
        "the same mode, model, dataset and length limit",
        lambda c: (_place(c), c["mode"], c["dataset"], c["sampling"]["max_new_tokens"]),
    ),
    ("the same mode and model", lambda c: (_place(c), c["mode"])),
    ("the same model in another mode", _place),
)
