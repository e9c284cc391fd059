"""`async-rollout cells CONFIG`: the cells of a sweep, one a line."""

import sys
from argparse import ArgumentParser, Namespace

from async_rollout.commands.sweeps import add_sweep, sweep_of
from async_rollout.config.cells import cells, inert_warnings


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    add_sweep(parser)


def execute(args: Namespace) -> None:
    """Print the directory of each cell, and what cannot make a difference as a warning."""
    sweep = sweep_of(args)
    for cell in cells(sweep):
        print(cell.directory(sweep.experiment))
    for warning in inert_warnings(sweep):
        print(f"warning: {warning}", file=sys.stderr)
