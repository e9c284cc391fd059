"""Cells that differ in seed only, and how they are named."""

from collections.abc import Callable
from dataclasses import dataclass

from async_rollout.analysis.collect import Cells, mode_rank
from async_rollout.config.cells import Cell
from async_rollout.records.summary import Summary

Seeds = list[tuple[Cell, Summary]]


@dataclass(frozen=True)
class Variant:
    """What is learned, apart from the schedule: algorithm, arm and objective."""

    algorithm: str
    arm: str
    objective: str

    @property
    def treatment(self) -> str:
        """Objective, or arm (objective): what differs where the algorithm is the same."""
        if self.arm in ("", self.objective):
            return self.objective
        return f"{self.arm} ({self.objective})"

    def label(self, others: "list[Variant]") -> str:
        """The treatment, after the algorithm if `others` have several."""
        several = len({v.algorithm for v in others}) > 1
        return f"{self.algorithm}, {self.treatment}" if several else self.treatment


def variant_of(summary: Summary) -> Variant:
    """The variant that a summary belongs to."""
    return Variant(summary.algorithm, summary.arm, summary.objective)


def variants(cells: Cells) -> list[Variant]:
    """All variants of the finished cells: by algorithm, the base arm first, `live` before others."""
    found = dict.fromkeys(variant_of(summary) for _, summary in cells.done())
    return sorted(found, key=lambda v: (v.algorithm, v.arm != "", v.arm, v.objective != "live", v.objective))


def treatments(cells: Cells) -> list[str]:
    """Treatments of all variants, the base arm's first."""
    order = sorted(variants(cells), key=lambda v: (v.arm != "", v.arm, v.objective != "live", v.objective))
    return list(dict.fromkeys(variant.treatment for variant in order))


def bounds(cells: Cells) -> list:
    """All K of the finished asynchronous cells, ascending."""
    return sorted({cell.k for cell, _ in cells.done() if cell.mode != "sync"}, key=float)


def modes(cells: Cells) -> list[str]:
    """Modes of the finished cells, sync first."""
    return sorted({cell.mode for cell, _ in cells.done()}, key=lambda mode: (mode_rank(mode), mode))


def schedules(cells: Cells) -> list[tuple[str, int | str]]:
    """(mode, K) of the finished cells, sync first."""
    found = {(cell.mode, cell.k) for cell, _ in cells.done()}
    return sorted(found, key=lambda s: (mode_rank(s[0]), s[0], float(s[1])))


def by_schedule(cells: Cells, variant: Variant) -> dict[tuple[str, int | str], Seeds]:
    """Seeds by (mode, K) of one variant. Synchronous runs of the same algorithm and arm stand beside
    each objective: at staleness 0 the sweep has one cell for them."""
    found: dict[tuple[str, int | str], list] = {}
    for cell, summary in cells.done():
        same = variant_of(summary) == variant
        if cell.mode == "sync":
            same = (cell.algorithm, cell.arm) == (variant.algorithm, variant.arm)
        if same:
            found.setdefault((cell.mode, cell.k), []).append((cell, summary))
    return found


def is_timed(cell: Cell, summary: Summary) -> bool:
    """True if the cell's speed means something: one attempt, and a lag that was not made on purpose."""
    return summary.attempts == 1 and cell.mode != "lagged"


def keep(cells: Cells, wanted: Callable[[Cell, Summary], bool]) -> Seeds:
    """The finished cells that are `wanted`, in order."""
    return [(cell, summary) for cell, summary in cells.done() if wanted(cell, summary)]
