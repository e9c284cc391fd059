"""`async-rollout export TOOL RESULTS`: the cells' commits for tensorboard, trackio or wandb."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from async_rollout.config.errors import ConfigError, Problem, closest
from async_rollout.monitor.export import EXTRAS, export_run, export_tensorboard
from async_rollout.monitor.places import find_places, results_directory
from async_rollout.places import RESULTS


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("tool", choices=EXTRAS, help="each is an extra of this package")
    parser.add_argument("results", metavar="RESULTS", nargs="?", type=Path, default=RESULTS)
    parser.add_argument(
        "--cell", metavar="ID", action="append", help="EXPERIMENT/DATASET/CELL; several times; default: all"
    )
    parser.add_argument("--out", type=Path, default=Path("tensorboard"), help="tensorboard: where to write")
    parser.add_argument("--project", default="async-rollout", help="trackio, wandb: the project's name")


def execute(args: Namespace) -> None:
    """Export the chosen cells."""
    places = find_places(results_directory(args.results))
    for name in args.cell or []:
        if name not in places:
            raise ConfigError([Problem("--cell", name, "no such cell", closest(name, places))])
    chosen = [places[name] for name in args.cell or places]
    if args.tool == "tensorboard":
        export_tensorboard(chosen, args.out)
        print(args.out)
    else:
        export_run(args.tool, chosen, args.project)
