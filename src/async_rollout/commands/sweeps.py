"""Arguments that several commands share: a sweep, or one block of its configuration."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from async_rollout.config.axes import dataset_slug
from async_rollout.config.block import Block
from async_rollout.config.cells import cells, config_hash, resolve
from async_rollout.config.errors import ConfigError, Problem, closest, problems_in
from async_rollout.config.load import load_sweep, sweep_from_dict
from async_rollout.config.sweep import SweepConfig
from async_rollout.records.cells import SUMMARY_FILE

if TYPE_CHECKING:
    from async_rollout.analysis.collect import Cells

B = TypeVar("B", bound=Block)


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


def gathered(sweep: SweepConfig) -> "Cells":
    """The summaries of the sweep's cells, found or not."""
    from async_rollout.analysis.collect import collect

    expected = cells(sweep)
    return collect(
        {cell: Path(cell.directory(sweep.experiment)) / SUMMARY_FILE for cell in expected},
        {cell: config_hash(resolve(sweep, cell)) for cell in expected},
    )


def block_from_json(model: type[B], text: str) -> B:
    """One block of a configuration, as the workflow passes it; ConfigError if it cannot be used."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(problems_in(error, model), model.__name__) from error
