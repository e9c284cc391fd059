"""`async-rollout cost CONFIG`: cells, hours of CPUs and GPUs, and disk of a sweep, before it is run.

By finished cells that are like its own, under `results` or wherever --past says; else by a guess that
you give. Each line says what it rests on.
"""

import os
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from async_rollout.analysis.cost import Estimate, Past, estimate
from async_rollout.commands.sweeps import add_sweep, sweep_of
from async_rollout.config.cells import cells, config_hash, resolve
from async_rollout.config.errors import ConfigError, Problem
from async_rollout.config.run import RunConfig
from async_rollout.monitor.places import find_places
from async_rollout.places import RESULTS
from async_rollout.records.cells import SUMMARY_FILE, SummaryError, is_done, read_summary

_HOUR = 3600
_MB = 1e6


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    add_sweep(parser)
    parser.add_argument(
        "--past", type=Path, action="append", metavar="DIR", help="results to judge by (default: results)"
    )
    parser.add_argument(
        "--seconds-per-update", type=float, metavar="S", help="a guess instead of finished cells"
    )


def execute(args: Namespace) -> None:
    """A line for each mode, algorithm and basis, then the sums. Disk is without models and checkpoints."""
    if args.seconds_per_update is not None and not args.seconds_per_update > 0:
        raise ConfigError(
            [Problem("--seconds-per-update", args.seconds_per_update, "out of range", "above 0")]
        )
    sweep = sweep_of(args)
    past = [each for root in args.past or [RESULTS, RESULTS / "published"] for each in _finished(root)]
    lines: dict[tuple[str, ...], list[tuple[RunConfig, Estimate]]] = defaultdict(list)
    done = 0
    for cell in cells(sweep):
        run = resolve(sweep, cell)
        if is_done(Path(cell.directory(sweep.experiment)) / SUMMARY_FILE, config_hash(run)):
            done += 1
            continue
        found = estimate(run, past, args.seconds_per_update)
        lines[run.mode, run.algorithm, found.source].append((run, found))
    for (mode, algorithm, source), members in lines.items():
        print(f"{mode} {algorithm}: {_sums(members)}; {source}")
    every = [member for members in lines.values() for member in members]
    print(f"{len(every)} cells to run, {done} done: {_sums(every)}")
    if every and all(found.seconds is not None for _, found in every):
        cores = max(1, len(os.sched_getaffinity(0)))
        hours = sum(found.seconds * min(run.cores, cores) for run, found in every) / _HOUR / cores
        print(f"on the {cores} cores of this machine about {hours:.3g} h, GPUs apart")


def _sums(members: list[tuple[RunConfig, Estimate]]) -> str:
    size = f"{sum(found.bytes for _, found in members) / _MB:,.0f} MB"
    if any(found.seconds is None for _, found in members):
        return f"{len(members)} cells, hours unknown (give --seconds-per-update), {size}"
    cpu = sum(run.cores * found.seconds for run, found in members) / _HOUR
    gpu = sum(run.gpus * found.seconds for run, found in members) / _HOUR
    return f"{len(members)} cells, {cpu:.3g} CPU hours, {gpu:.3g} GPU hours, {size}"


def _finished(root: Path) -> Iterator[Past]:
    """Every sound summary below a directory."""
    for place in find_places(root).values():
        try:
            summary = read_summary(place.directory / SUMMARY_FILE)
            rows = (place.directory / "results.jsonl").is_file()
            yield Past.of(summary, _size(place.directory) if rows else None)
        except (FileNotFoundError, SummaryError, ValidationError):
            continue  # not finished, damaged, or of an older program


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
