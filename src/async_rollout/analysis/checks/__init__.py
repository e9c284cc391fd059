"""What a reader must know before believing the tables: everything that looks wrong or thin."""

from collections import Counter

from async_rollout.analysis.checks.axes import bounds, inert_axes, inert_measures
from async_rollout.analysis.checks.cell import accounts, files, notable
from async_rollout.analysis.checks.check import LEVELS, Check
from async_rollout.analysis.checks.origins import origins
from async_rollout.analysis.checks.sweep import absent, copies, sizes
from async_rollout.analysis.collect import Cells

REAL_BACKENDS = ("causal_lm",)
_OF_A_SWEEP = (sizes, absent, copies, bounds, inert_axes, inert_measures, origins)
_OF_A_CELL = (accounts, files, notable)


def checks(cells: Cells) -> list[Check]:
    """All findings, the gravest first."""
    found = [check for look in _OF_A_SWEEP for check in look(cells)]
    for cell, summary in cells.done():
        found += [
            Check(level, text, cell) for look in _OF_A_CELL for level, text in look(cells, cell, summary)
        ]
    return sorted(found, key=lambda check: LEVELS.index(check.level))


def unreal_backends(cells: Cells) -> dict[str, int]:
    """Backends that are no language model, and how many finished cells used them."""
    counts = Counter(summary.backend for _, summary in cells.done())
    return {name: n for name, n in sorted(counts.items()) if name not in REAL_BACKENDS}
