"""Arguments that several commands share: a sweep, or one block of its configuration."""

import json
import platform
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import psutil
from pydantic import ValidationError

from async_rollout.config.axes import dataset_slug
from async_rollout.config.block import Block
from async_rollout.config.cells import cells, resolve
from async_rollout.config.errors import ConfigError, Problem, closest, problems_in
from async_rollout.config.load import load_sweep, sweep_from_dict
from async_rollout.config.sweep import SweepConfig
from async_rollout.records.cells import SUMMARY_FILE
from async_rollout.records.states import last_state

if TYPE_CHECKING:
    from async_rollout.analysis.collect import Cells

B = TypeVar("B", bound=Block)
QUIET_SEC = 3600.0  # a cell on another machine that wrote nothing for so long is not at work


def add_sweep(parser: ArgumentParser, *, required: bool = True) -> None:
    """CONFIG and its overrides."""
    parser.add_argument(
        "config",
        metavar="CONFIG",
        nargs=None if required else "?",
        help="a sweep: a YAML file such as config/demo.yaml",
    )
    parser.add_argument(
        "overrides", nargs="*", metavar="key.path=value", help="replaces a key of the file; read as YAML"
    )


def sweep_of(args: Namespace) -> SweepConfig:
    """The sweep that the arguments name; ConfigError if it cannot be run."""
    return load_sweep(args.config, args.overrides)


def add_sweep_or_json(parser: ArgumentParser) -> None:
    """CONFIG and its overrides, or the whole sweep as the workflow passes it."""
    add_sweep(parser, required=False)
    parser.add_argument("--sweep", metavar="JSON", help="the sweep itself, instead of CONFIG")
    parser.add_argument(
        "--over", action="store_true", help="no cell is at work: one without a summary will not come"
    )


def add_dataset(parser: ArgumentParser) -> None:
    """Which dataset."""
    parser.add_argument("--dataset", metavar="NAME", help="only this dataset")


def sweep_or_json(args: Namespace) -> SweepConfig:
    """The sweep that the arguments name; ConfigError if it cannot be used."""
    if args.sweep:
        return sweep_from_dict(json.loads(args.sweep), "--sweep")
    if args.config is None:
        raise ConfigError([Problem("CONFIG", None, "missing", "name a sweep, such as config/demo.yaml")])
    return sweep_of(args)


def chosen_datasets(sweep: SweepConfig, name: str | None) -> list[str]:
    """The datasets meant by --dataset: all, or the one with this name in paths."""
    slugs = {dataset_slug(dataset): dataset for dataset in sweep.datasets}
    if name is None:
        return sweep.datasets
    if name not in slugs:
        raise ConfigError([Problem("--dataset", name, "not in this sweep", closest(name, slugs))])
    return [slugs[name]]


def gathered(sweep: SweepConfig, *, over: bool) -> "Cells":
    """The summaries of the sweep's cells, found or not; `over`: no cell is at work, whatever it says."""
    from async_rollout.analysis.collect import collect
    from async_rollout.analysis.plans import Plan

    paths = {cell: Path(cell.directory(sweep.experiment)) / SUMMARY_FILE for cell in cells(sweep)}
    plans = {cell: Plan.of(resolve(sweep, cell)) for cell in paths}
    under_way = not over and any(is_at_work(path.parent) for path in paths.values())
    return collect(paths, plans, under_way=under_way)


def is_at_work(cell: Path) -> bool:
    """True if the run in this directory has not ended, as far as this machine can know."""
    last = last_state(cell)
    if last is None or last.state not in ("setting up", "running", "evaluating"):
        return False
    if last.host == platform.node():
        return _began_before(last.pid, last.time)
    touched = max((file.stat().st_mtime for file in cell.iterdir() if file.is_file()), default=0.0)
    return time.time() - touched < QUIET_SEC


def _began_before(pid: int, moment: float) -> bool:
    """True if this process is alive and no later one to which its number was given again."""
    try:
        return psutil.Process(pid).create_time() <= moment
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        return False


def block_from_json(model: type[B], text: str) -> B:
    """One block of a configuration, as the workflow passes it; ConfigError if it cannot be used."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(problems_in(error, model), model.__name__) from error
