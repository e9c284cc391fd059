"""`async-rollout tables CONFIG`: every table of `analysis.tables.catalog`, as csv and md."""

from argparse import ArgumentParser, Namespace

from async_rollout.commands.sweeps import (
    add_dataset,
    add_sweep_or_json,
    chosen_datasets,
    gathered,
    sweep_or_json,
)
from async_rollout.places import dataset_directory


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    add_sweep_or_json(parser)
    add_dataset(parser)


def execute(args: Namespace) -> None:
    """Write the tables beside the dataset's runs."""
    sweep = sweep_or_json(args)
    from async_rollout.analysis.tables.catalog import write_tables

    found = gathered(sweep, over=args.over)
    for dataset in chosen_datasets(sweep, args.dataset):
        directory = dataset_directory(sweep, dataset) / "tables"
        write_tables(found.of_dataset(dataset), directory, sweep.report)
        print(directory)
