"""Cells that differ in seed only, and how they are named."""

from dataclasses import dataclass

from async_rollout.analysis.collect import Cells, mode_rank
from async_rollout.config.cells import Cell
from async_rollout.records.summary import Summary


@dataclass(frozen=True)
class Variant:
    """What is learned, apart from the schedule: algorithm, arm and objective."""

    algorithm: str
    arm: str
    objective: str

    def label(self, others: "list[Variant]") -> str:
        """As short as it can be while it differs from `others`."""
        parts = [self.algorithm] if len({v.algorithm for v in others}) > 1 else []
        if self.arm and self.arm != self.objective:
            parts.append(self.arm)
        return ", ".join([*parts, f"{self.objective} objective"])


def variant_of(summary: Summary) -> Variant:
    """The variant that a summary belongs to."""
    return Variant(summary.algorithm, summary.arm, summary.objective)


def variants(cells: Cells) -> list[Variant]:
    """All variants of the finished cells, in order of their cells."""
    found = dict.fromkeys(variant_of(summary) for _, summary in cells.done())
    return sorted(found, key=lambda v: (v.algorithm, v.arm != "", v.arm, v.objective != "live", v.objective))


def bounds(cells: Cells) -> list:
    """All K of the finished asynchronous cells, ascending."""
    return sorted({cell.k for cell, _ in cells.done() if cell.mode != "sync"}, key=float)


def modes(cells: Cells) -> list[str]:
    """Modes of the finished cells, sync first."""
    return sorted({cell.mode for cell, _ in cells.done()}, key=lambda mode: (mode_rank(mode), mode))


def by_schedule(cells: Cells, variant: Variant) -> dict[tuple[str, int | str], list[tuple[Cell, Summary]]]:
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
