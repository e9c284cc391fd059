"""`async-rollout preflight CONFIG`: whether this machine can take the sweep's runs now; one line a check.

Exit code 1 if a run would fail: a GPU is missing, or holds what a killed process left; too little
memory or disk; a cache that cannot be written; more than the Slurm job may use.
"""

import sys
from argparse import ArgumentParser, Namespace

from async_rollout.commands.environment import set_hub_home
from async_rollout.commands.sweeps import add_sweep, sweep_of
from async_rollout.config.cells import cells, resolve
from async_rollout.config.errors import ConfigError, Problem
from async_rollout.config.load import run_from_json
from async_rollout.config.run import RunConfig
from async_rollout.places import RESULTS, model_directory


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    add_sweep(parser, required=False)
    parser.add_argument("--resolved", metavar="JSON", help="one cell's configuration, instead of CONFIG")
    parser.add_argument(
        "--elsewhere",
        action="store_true",
        help="cells run on other nodes: look only at what those share with this one, disk and caches",
    )


def execute(args: Namespace) -> None:
    """Print every different finding; SystemExit(1) after the last if one failed."""
    from async_rollout.doctor.machine import findings, read_machine, shared_findings

    look = shared_findings if args.elsewhere else findings
    runs = _meant(args)
    now = read_machine(RESULTS)
    found = {}
    for run in runs:
        directory = model_directory(run)
        if directory is not None:
            run = run.model_copy(update={"model": run.model.model_copy(update={"id": str(directory)})})
        found |= dict.fromkeys(look(run.placed(), now))
    for finding in found:
        print(finding)
    if failed := sum(finding.level == "fail" for finding in found):
        print(f"{failed} checks failed", file=sys.stderr)
        raise SystemExit(1)


def _meant(args: Namespace) -> list[RunConfig]:
    """The runs to look at."""
    if args.resolved:
        return [run_from_json(args.resolved)]
    if args.config is None:
        raise ConfigError([Problem("CONFIG", None, "missing", "name a sweep, such as config/demo.yaml")])
    sweep = sweep_of(args)
    set_hub_home(sweep.hub)
    return [resolve(sweep, cell) for cell in cells(sweep)]
