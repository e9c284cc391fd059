"""`async-rollout check RESULTS`: counts every finished cell's rows again; exit code 1 if a number differs.

RESULTS is a results directory, an experiment's, or a cell's. Held against the rows are the invariants
`trained_staleness_at_most_K`, `k0_is_on_policy` and `nothing_lost` of docs/design.md.
"""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from async_rollout.analysis.audit import faults
from async_rollout.monitor.places import find_places, results_directory
from async_rollout.places import RESULTS


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("results", metavar="RESULTS", nargs="?", type=Path, default=RESULTS)


def execute(args: Namespace) -> None:
    """A line a fault, then a count; SystemExit(1) if there are faults, or nothing that is finished."""
    sound, broken, unfinished = 0, 0, 0
    for place in find_places(results_directory(args.results)).values():
        try:
            found = faults(place.directory)
        except FileNotFoundError:
            unfinished += 1
            continue
        for fault in found:
            print(f"{place.id}: {fault}", flush=True)
        broken += bool(found)
        sound += not found
    print(f"{sound} cells sound, {broken} broken, {unfinished} not finished", file=sys.stderr)
    if broken or not sound:
        raise SystemExit(1)
