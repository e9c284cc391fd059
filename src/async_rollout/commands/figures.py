"""`async-rollout figures CONFIG`: figures of each dataset, as png and svg, and their points as csv."""

from argparse import ArgumentParser, Namespace

from async_rollout.commands.sweeps import (
    add_dataset,
    add_sweep_or_json,
    chosen_datasets,
    gathered,
    sweep_or_json,
)
from async_rollout.config.errors import ConfigError, Problem, closest
from async_rollout.places import dataset_directory


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    add_sweep_or_json(parser)
    add_dataset(parser)
    parser.add_argument("--figure", metavar="NAME", help="only this figure")


def execute(args: Namespace) -> None:
    """Draw the figures beside the dataset's runs."""
    sweep = sweep_or_json(args)
    from async_rollout.analysis.figures.catalog import FIGURES, write_figure

    if args.figure not in (None, *FIGURES):
        raise ConfigError([Problem("--figure", args.figure, "no such figure", closest(args.figure, FIGURES))])
    found = gathered(sweep, over=args.over)
    for dataset in chosen_datasets(sweep, args.dataset):
        directory = dataset_directory(sweep, dataset) / "figures"
        for name in [args.figure] if args.figure else FIGURES:
            write_figure(name, found.of_dataset(dataset), directory, sweep.report)
        print(directory)
