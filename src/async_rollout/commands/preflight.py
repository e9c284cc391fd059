"""`async-rollout preflight CONFIG`: whether this machine can take the sweep's runs now; one line a check.

Exit code 1 if a run would fail: a GPU is missing, or holds what a killed process left; too little
memory or disk; a cache that cannot be written; more than the Slurm job may use.
"""

import sys
from argparse import ArgumentParser, Namespace

from async_rollout.commands.sweeps import add_sweep, sweep_of
from async_rollout.config.cells import cells, resolve
from async_rollout.places import RESULTS, model_directory


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    add_sweep(parser)


def execute(args: Namespace) -> None:
    """Print every different finding; SystemExit(1) after the last if one failed."""
    from async_rollout.doctor.machine import findings, read_machine

    sweep = sweep_of(args)
    now = read_machine(RESULTS)
    found = {}
    for cell in cells(sweep):
        run = resolve(sweep, cell)
        directory = model_directory(run)
        if directory is not None:
            run = run.model_copy(update={"model": run.model.model_copy(update={"id": str(directory)})})
        found |= dict.fromkeys(findings(run, now))
    for finding in found:
        print(finding)
    if failed := sum(finding.level == "fail" for finding in found):
        print(f"{failed} checks failed", file=sys.stderr)
        raise SystemExit(1)
