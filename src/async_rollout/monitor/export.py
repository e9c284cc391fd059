"""A cell's commits for other trackers: TensorBoard's event files, trackio, Weights & Biases."""

import math
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from async_rollout.config.errors import ConfigError, Problem
from async_rollout.monitor.files import read_json
from async_rollout.monitor.places import Place
from async_rollout.records.cells import METRICS_FILE
from async_rollout.records.files import read_jsonl

EXTRAS = {"tensorboard": "tensorboard", "trackio": "trackio", "wandb": "wandb"}


def scalars(place: Place) -> Iterator[tuple[int, dict[str, float]]]:
    """(version, {name: value}) of each commit, then of each evaluation; nothing is thinned out."""
    directory = place.directory
    for file, prefix in ((METRICS_FILE, "train"), ("evals.jsonl", "eval")):
        if (directory / file).is_file():
            for row in read_jsonl(directory / file):
                numbers = {f"{prefix}/{name}": float(v) for name, v in row.items() if _is_scalar(name, v)}
                yield int(row["version"]), numbers


def export_tensorboard(places: list[Place], out: Path) -> None:
    """One directory of event files a cell below `out`; an earlier export of the cell is replaced."""
    writer_of = _need("tensorboard", "tensorboard.summary.writer.event_file_writer").EventFileWriter
    event_pb2 = import_module("tensorboard.compat.proto.event_pb2")
    summary_pb2 = import_module("tensorboard.compat.proto.summary_pb2")
    for place in places:
        target = out / place.experiment / place.dataset / place.cell
        for old in target.glob("events.out.tfevents.*"):
            old.unlink()
        writer = writer_of(str(target))
        for version, values in scalars(place):
            summary = summary_pb2.Summary()
            for name, value in values.items():
                summary.value.add(tag=name, simple_value=value)
            seconds = values.get("train/seconds", values.get("eval/seconds", 0.0))
            writer.add_event(event_pb2.Event(wall_time=seconds, step=version, summary=summary))
        writer.close()


def export_run(tool: str, places: list[Place], project: str) -> None:
    """One run a cell in `trackio` or `wandb`, which share this interface."""
    tracker = _need(tool, tool)
    for place in places:
        config = read_json(place.directory / "config.json") or {}
        run = tracker.init(project=project, name=place.id.replace("/", "."), config=config)
        for version, values in scalars(place):
            run.log({**values, "version": version})
        run.finish()


def _need(tool: str, module: str):
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        fix = f"pip install -e '.[{EXTRAS[tool]}]'"
        raise ConfigError([Problem(tool, error.name, "is not installed", fix)]) from None


def _is_scalar(name: str, value: object) -> bool:
    return name != "version" and isinstance(value, int | float) and math.isfinite(value)
