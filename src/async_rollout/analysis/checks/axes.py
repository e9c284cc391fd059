"""Axes and parts of the objective that should make a difference, and made none."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from async_rollout.analysis.checks.check import Check
from async_rollout.analysis.checks.fingerprint import fingerprint
from async_rollout.analysis.collect import AXES, Cells, order
from async_rollout.analysis.groups import Group, seed_groups
from async_rollout.config.cells import Cell
from async_rollout.config.objective import READERS
from async_rollout.records.summary import Summary

CLIPPING = READERS["objective.clip_high"]
# Axes that decide what is sampled or learned, and those besides dataset and mode of a comparison
_COMPARED = {
    "k": ("algorithm", "arm", "decoupled"),
    "seed": (),
    "decoupled": ("algorithm", "arm"),
    "arm": ("algorithm",),
    "algorithm": (),
}


def bounds(cells: Cells) -> Iterator[Check]:
    """A K that cannot bind, that did not, or, in `lagged`, that is not the age of what was trained."""
    for group in seed_groups(cells):
        if group.done and group.first.k != 0:
            yield from _lag(group) if group.first.mode == "lagged" else _bound(group)


def inert_axes(cells: Cells) -> Iterator[Check]:
    """Two values of an axis under which all cells that differ in it alone have the same numbers."""
    prints = {cell: fingerprint(summary) for cell, summary in cells.done()}
    for axis, within in _COMPARED.items():
        places: dict[tuple, list[Cell]] = defaultdict(list)
        for cell in prints:
            places[tuple(getattr(cell, other) for other in AXES if other != axis)].append(cell)
        alike: dict[tuple, list[bool]] = defaultdict(list)
        for found in places.values():
            for a, b in combinations(sorted(found, key=order), 2):
                context = tuple(getattr(a, name) for name in ("dataset", "mode", *within))
                values = getattr(a, axis), getattr(b, axis)
                alike[context, values].append(prints[a] == prints[b])
        for (context, (a, b)), equal in alike.items():
            if all(equal):
                where = ", ".join(map(_shown, context))
                yield Check(
                    "warning",
                    f"{where}: axis {axis} is inert, {_shown(a)} and {_shown(b)} have the same numbers in "
                    f"{_pairs(len(equal))} of cells",
                )


def inert_measures(cells: Cells) -> Iterator[Check]:
    """A measure that stayed exactly 0 in every cell of one variant, over all of K and all seeds."""
    groups: dict[tuple, list[Summary]] = defaultdict(list)
    for cell, summary in cells.done():
        groups[cell.dataset, cell.mode, cell.algorithm, cell.arm, cell.decoupled].append(summary)
    for (dataset, mode, algorithm, arm, decoupled), group in groups.items():
        name = f"{dataset}, {mode}, {algorithm}, {arm or 'base'}, decoupled {decoupled}"
        asked = ", ".join(map(str, sorted({summary.k for summary in group}, key=float)))
        for measure, what in _at_work(group[0]):
            if not any(getattr(summary, measure) for summary in group):
                yield Check(
                    "note",
                    f"{name}: inert, {what} never acted: {measure} is 0 in all {len(group)} cells "
                    f"(K = {asked}, {group[0].minibatches} minibatches)",
                )


def _bound(group: Group) -> Iterator[Check]:
    summaries = [summary for _, summary in group.done]
    oldest = max(summary.staleness_max for summary in summaries)
    updates = min(summary.updates for summary in summaries)
    inert = sum(summary.staleness_max < 1 for summary in summaries)
    k, name = group.first.k, _name(group)
    if inert:
        yield Check(
            "warning",
            f"{name}: inert in {inert} of {len(summaries)} cells, which trained no token older than 0 "
            "versions",
        )
    if k == "inf":
        return
    if updates < 4 * (k + 1):
        yield Check("warning", f"{name}: cannot bind within {updates} updates; it takes {4 * (k + 1)}")
    elif 1 <= oldest < k:
        yield Check("note", f"{name}: never bound, the oldest trained token was {oldest} versions old")


def _lag(group: Group) -> Iterator[Check]:
    for cell, summary in group.done:
        due = int(min(float(cell.k), summary.updates - 1))
        if summary.staleness_max != due:
            text = f"the oldest trained token was {summary.staleness_max} versions old, lagged makes it {due}"
            yield Check("error", text, cell)


def _name(group: Group) -> str:
    cell = group.first
    variant = f"{cell.dataset}, {cell.mode}, {cell.algorithm}, {cell.arm or 'base'}"
    return f"{variant}, decoupled {cell.decoupled}, K = {cell.k}"


def _shown(value: object) -> str:
    return "base" if value == "" else str(value)


def _pairs(n: int) -> str:
    return "the one pair" if n == 1 else f"all {n} pairs"


def _at_work(summary: Summary) -> Iterator[tuple[str, str]]:
    """Measures that tell whether a part of the objective acted at all, and the part."""
    if summary.objective in CLIPPING:
        yield "clip_fraction", "clipping"
    weight = summary.config.get("objective", {}).get("weight")
    if summary.objective == "dis" or (summary.objective, weight) == ("decoupled", "mask"):
        yield "mask_fraction", "the mask on the importance weight"
