"""`async-rollout status RESULTS`: how the cells of a sweep are doing, as a table."""

import shutil
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from async_rollout.monitor.places import results_directory
from async_rollout.monitor.status import status
from async_rollout.places import RESULTS

_WIDE = 1000  # columns where nobody looks, as in a pipe


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("results", metavar="RESULTS", nargs="?", type=Path, default=RESULTS)


def execute(args: Namespace) -> None:
    """Print it once; `watch` repeats it."""
    results = results_directory(args.results)
    print(status(results, shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE))
