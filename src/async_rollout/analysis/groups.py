"""Cells that differ in seed only: what statistics are taken over. A group has its missing cells too."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.columns import RATES
from async_rollout.analysis.statistics import Estimate
from async_rollout.config.axes import OVERLAPPING
from async_rollout.config.cells import Cell
from async_rollout.records.summary import Summary

GROUP = ("dataset", "mode", "algorithm", "arm", "objective", "k", "decoupled", "minibatches", "k_steps")
PARTS = ("mean", "std", "low", "high", "boot_low", "boot_high")  # of an estimate, as columns name them
RATIO_PARTS = ("mean", "low", "high", "boot_low", "boot_high")  # its deviation is that of logarithms


@dataclass(frozen=True, eq=False)
class Group:
    """The cells of one place on the axes but for the seed; `done` are those that finished."""

    first: Cell
    seeds: int
    done: tuple[tuple[Cell, Summary], ...]
    objective: str | float  # NaN where nobody knows: no cell has finished, and none was planned
    minibatches: int | float

    @property
    def overlaps(self) -> bool:
        """True if it generates and trains at the same time."""
        return self.first.mode in OVERLAPPING

    @cached_property
    def axes(self) -> dict[str, object]:
        """The columns of `GROUP`."""
        cell = self.first
        return {
            "dataset": cell.dataset,
            "mode": cell.mode,
            "algorithm": cell.algorithm,
            "arm": cell.arm or "base",
            "objective": self.objective,
            "k": cell.k,
            "decoupled": cell.decoupled,
            "minibatches": self.minibatches,
            "k_steps": float(cell.k) * self.minibatches if cell.k != 0 else 0.0,
        }

    def by_seed(self, value: Callable[[Summary], float]) -> dict[int, float]:
        """`value` of each finished cell; those without one (NaN) are left out."""
        found = {cell.seed: value(summary) for cell, summary in self.done}
        return {seed: x for seed, x in found.items() if not math.isnan(x)}

    def timed(self, value: Callable[[Summary], float]) -> dict[int, float]:
        """`by_seed` of a speed: cells that needed several attempts, or stood still, are left out."""
        once = {cell.seed for cell, summary in self.done if summary.attempts == 1}
        return {seed: x for seed, x in self.by_seed(value).items() if seed in once and x > 0}


def seed_groups(cells: Cells) -> list[Group]:
    """All groups, in order of their cells."""
    places: dict[tuple, list[Cell]] = {}
    for cell in cells.expected:
        place = (cell.dataset, cell.mode, cell.algorithm, cell.arm, cell.k, cell.decoupled)
        places.setdefault(place, []).append(cell)
    return [_group(cells, members) for members in places.values()]


def estimate_columns(name: str, found: Estimate, *, parts: tuple[str, ...] = PARTS) -> dict[str, float]:
    """An estimate as the columns `name`_mean, `name`_low and so on; a rate's interval lies in [0, 1]."""
    if name in RATES:
        found = found.within(0.0, 1.0)
    return {f"{name}_{part}": getattr(found, part) for part in parts}


def column_names(*names: str, parts: tuple[str, ...] = PARTS) -> list[str]:
    """What `estimate_columns` calls its columns."""
    return [f"{name}_{part}" for name in names for part in parts]


def _group(cells: Cells, members: list[Cell]) -> Group:
    done = tuple((cell, cells.summaries[cell]) for cell in members if cell in cells.summaries)
    plans = [cells.plans[cell] for cell in members if cell in cells.plans]
    known = [summary for _, summary in done] or plans
    objective, minibatches = (known[0].objective, known[0].minibatches) if known else (math.nan, math.nan)
    return Group(members[0], len(members), done, objective, minibatches)
