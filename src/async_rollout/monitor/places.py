"""Where cells lie: found by listing directories, never by a name that someone sent."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from async_rollout.config.errors import ConfigError, Problem
from async_rollout.monitor.files import look_up, printable, read_json, subdirectories
from async_rollout.records.expected import EXPECTED_FILE, ExpectedCell

_DEEPEST = 5  # directories below the one that was named


@dataclass(frozen=True, slots=True)
class Place:
    """A cell's directory, which may not be there yet."""

    experiment: str
    dataset: str
    cell: str
    directory: Path
    expected: ExpectedCell | None

    @property
    def id(self) -> str:
        """`<experiment>/<dataset>/<cell>`."""
        return f"{self.experiment}/{self.dataset}/{self.cell}"


def results_directory(path: Path) -> Path:
    """The path, if it is a directory; ConfigError that names it if not."""
    if not path.is_dir():
        raise ConfigError([Problem("RESULTS", str(path), "no such directory", "name a results directory")])
    return path


def find_places(results: Path) -> dict[str, Place]:
    """Every cell below a results directory or one experiment's directory, by id.

    Where neither is it: the cell that it is itself, or those that lie below it in any other order.
    """
    places = {} if _is_cell(results) else _in_order(results)
    return places or {place.id: place for place in _anywhere(results, _DEEPEST)}


def _in_order(results: Path) -> dict[str, Place]:
    names = subdirectories(results)
    alone = any("runs" in subdirectories(results / name) for name in names)
    experiments = [results] if alone else [results / name for name in names]
    return {place.id: place for experiment in experiments for place in _of_experiment(experiment)}


def _anywhere(directory: Path, deep: int) -> Iterator[Place]:
    if _is_cell(directory):
        *_, experiment, dataset, cell = ["", "", *(p for p in directory.resolve().parts[1:] if p != "runs")]
        yield Place(printable(experiment), printable(dataset), printable(cell), directory, None)
    elif deep:
        for name in subdirectories(directory):
            yield from _anywhere(directory / name, deep - 1)


def _is_cell(directory: Path) -> bool:
    """Whether a run wrote its files here."""
    rows = ("states.jsonl", "metrics.jsonl", "summary.json")
    return look_up(directory / "config.json") is not None and any(look_up(directory / name) for name in rows)


def _of_experiment(experiment: Path) -> Iterator[Place]:
    expected = _expected(experiment)
    for dataset in _real(experiment, {dataset for dataset, _ in expected}):
        runs = experiment / dataset / "runs"
        if "runs" not in _real(experiment / dataset, {"runs"}):
            continue
        for cell in _real(runs, {cell for d, cell in expected if d == dataset}):
            names = (printable(name) for name in (experiment.name, dataset, cell))
            yield Place(*names, runs / cell, expected.get((dataset, cell)))


def _real(parent: Path, wanted: set[str]) -> list[str]:
    """The directories in `parent`, and the wanted ones that may still come; never a link."""
    there = set(subdirectories(parent))
    return sorted(there | {name for name in wanted - there if not os.path.lexists(parent / name)})


def _expected(experiment: Path) -> dict[tuple[str, str], ExpectedCell]:
    """The cells that a workflow announced; entries that are none are left out."""
    listed = read_json(experiment / EXPECTED_FILE)
    names = {field.name for field in fields(ExpectedCell)}
    found = {}
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, dict) and entry.keys() == names and _sound(entry):
            cell = ExpectedCell(**entry)
            found[cell.dataset, cell.cell] = cell
    return found


def _sound(entry: dict) -> bool:
    words = [entry[name] for name in ("dataset", "cell", "mode", "algorithm", "arm")]
    numbers = [entry[name] for name in ("decoupled", "seed", "updates")]
    return (
        all(isinstance(word, str) for word in words)
        and all(_is_name(word) for word in words[:2])
        and all(isinstance(number, int) for number in numbers)
        and (entry["k"] == "inf" or isinstance(entry["k"], int))
    )


def _is_name(word: str) -> bool:
    """Whether a word names something in a directory, and nothing elsewhere."""
    return word not in ("", ".", "..") and "/" not in word and "\0" not in word
