"""The cells of a sweep as one table: a row for each cell that was asked for, found or not."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import pandas as pd

from async_rollout.analysis.commits import Commits, read_commits
from async_rollout.analysis.plans import Plan
from async_rollout.config.cells import Cell
from async_rollout.records.cells import SummaryError, read_summary
from async_rollout.records.states import StateRow, last_state
from async_rollout.records.summary import Summary

AXES = ("dataset", "mode", "algorithm", "arm", "k", "decoupled", "seed")
FRAME = ("cell", *AXES, "status")
MODES = ("sync", "async", "areal", "lagged")


@dataclass(frozen=True)
class Gap:
    """Why a cell has no summary that can be used, and what it did last: None if it never began."""

    cell_id: str
    kind: Literal["missing", "broken"]
    text: str
    state: StateRow | None = None


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a sweep in order of their axes; `summaries` holds the usable ones.

    `under_way`: some cell of the sweep is being computed, so that a missing one may still come.
    """

    expected: tuple[Cell, ...]
    paths: Mapping[Cell, Path]
    summaries: Mapping[Cell, Summary]
    gaps: Mapping[Cell, Gap]
    plans: Mapping[Cell, Plan] = field(default_factory=dict)
    under_way: bool = False
    _logs: dict[Cell, Commits | str] = field(default_factory=dict)  # read so far, shared with `of_dataset`

    def done(self) -> list[tuple[Cell, Summary]]:
        """Cells with a usable summary, in order."""
        return [(cell, self.summaries[cell]) for cell in self.expected if cell in self.summaries]

    def of_dataset(self, dataset: str) -> "Cells":
        """Only the cells of one dataset."""
        kept = tuple(cell for cell in self.expected if cell.dataset == dataset)
        return Cells(
            kept,
            {c: self.paths[c] for c in kept},
            {c: self.summaries[c] for c in kept if c in self.summaries},
            {c: self.gaps[c] for c in kept if c in self.gaps},
            {c: self.plans[c] for c in kept if c in self.plans},
            self.under_way,
            self._logs,
        )

    @property
    def slug(self) -> str:
        """The name in paths of the one dataset that these cells have."""
        (slug,) = {cell.dataset_slug for cell in self.expected}
        return slug

    def directory(self, cell: Cell) -> Path:
        """Where the cell's files are."""
        return self.paths[cell].parent

    @cached_property
    def datasets(self) -> list[str]:
        """Names of the datasets, in order."""
        return list(dict.fromkeys(cell.dataset for cell in self.expected))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row a cell: `cell` (its id), the axes, `status` (`missing` and `broken` too)."""
        rows = [
            {"cell": cell.id, **{axis: getattr(cell, axis) for axis in AXES}, "status": self._status(cell)}
            for cell in self.expected
        ]
        return pd.DataFrame(rows, columns=list(FRAME))

    @cached_property
    def commits(self) -> dict[Cell, Commits]:
        """What each finished cell's `metrics.jsonl` holds, where it has a sound one."""
        logs = {cell: self._log(cell) for cell, _ in self.done()}
        return {cell: log for cell, log in logs.items() if isinstance(log, Commits)}

    @cached_property
    def damaged_logs(self) -> dict[Cell, str]:
        """Finished cells without a sound `metrics.jsonl`, and what is wrong with it."""
        logs = {cell: self._log(cell) for cell, _ in self.done()}
        return {cell: log for cell, log in logs.items() if isinstance(log, str)}

    def _log(self, cell: Cell) -> Commits | str:
        if cell not in self._logs:
            self._logs[cell] = _log(self.directory(cell))
        return self._logs[cell]

    def _status(self, cell: Cell) -> str:
        return self.summaries[cell].status if cell in self.summaries else self.gaps[cell].kind


def collect(
    paths: Mapping[Cell, Path], plans: Mapping[Cell, Plan] | None = None, *, under_way: bool = False
) -> Cells:
    """Read the summary of each expected cell; what cannot be read becomes a `Gap`.

    With `plans` a summary of another config is a gap too.
    """
    plans = plans or {}
    summaries: dict[Cell, Summary] = {}
    gaps: dict[Cell, Gap] = {}
    for cell, path in paths.items():
        try:
            summary = read_summary(path)
            _refuse_foreign(cell, path, summary, plans.get(cell))
        except FileNotFoundError:
            text = "no summary.json: the cell has not finished"
            gaps[cell] = Gap(cell.id, "missing", text, last_state(path.parent))
        except SummaryError as error:
            gaps[cell] = Gap(cell.id, "broken", _without_directory(error, path), last_state(path.parent))
        else:
            summaries[cell] = summary
    return Cells(tuple(sorted(paths, key=order)), dict(paths), summaries, gaps, dict(plans), under_way)


def order(cell: Cell) -> tuple:
    """Sort key of a cell: dataset, mode, algorithm, arm, K as a number, decoupled, seed."""
    return (
        cell.dataset,
        mode_rank(cell.mode),
        cell.mode,
        cell.algorithm,
        cell.arm,
        float(cell.k),
        cell.decoupled,
        cell.seed,
    )


def mode_rank(mode: str) -> int:
    """Place of a mode in tables and legends; unknown ones come last."""
    return MODES.index(mode) if mode in MODES else len(MODES)


def duplicates(cells: Iterable[tuple[Cell, Summary]]) -> list[list[str]]:
    """Ids of cells whose summaries come from one and the same config."""
    by_hash: dict[str, list[str]] = {}
    for cell, summary in cells:
        by_hash.setdefault(summary.config_hash, []).append(cell.id)
    return [ids for ids in by_hash.values() if len(ids) > 1]


def _log(directory: Path) -> Commits | str:
    try:
        return read_commits(directory)
    except FileNotFoundError:
        return "no metrics.jsonl"
    except ValueError as error:
        return str(error).removeprefix(f"{directory}/")


def _refuse_foreign(cell: Cell, path: Path, summary: Summary, plan: Plan | None) -> None:
    for axis in AXES:
        wanted, found = getattr(cell, axis), getattr(summary, axis)
        if wanted != found:
            raise SummaryError(f"{path}: {axis} is {found!r}, this cell's is {wanted!r}")
        if summary.config.get(axis, found) != found:
            raise SummaryError(f"{path}: {axis} is {found!r}, its own config has {summary.config[axis]!r}")
    if plan is not None and summary.config_hash != plan.config_hash:
        raise SummaryError(f"{path}: made from another config than the sweep now asks for")


def _without_directory(error: SummaryError, path: Path) -> str:
    """The reason without the machine's path: a report travels."""
    return str(error).removeprefix(f"{path}: ")
