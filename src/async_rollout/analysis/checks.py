"""What a reader must know before believing the tables: everything that looks wrong or thin."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from async_rollout.analysis.collect import Cells, duplicates
from async_rollout.analysis.statistics import CLAIM_N
from async_rollout.config.cells import Cell
from async_rollout.config.objective import READERS
from async_rollout.records.summary import Flow, Summary

Level = Literal["error", "warning", "note"]
LEVELS = ("error", "warning", "note")
REAL_BACKENDS = ("causal_lm",)
CLIPPING = READERS["objective.clip_high"]


@dataclass(frozen=True)
class Check:
    """One finding. `cell` is set where it concerns a single cell."""

    level: Level
    text: str
    cell: Cell | None = None


def checks(cells: Cells) -> list[Check]:
    """All findings, the gravest first."""
    found = [*_sweep(cells), *_bounds(cells), *_inert(cells), *_origins(cells)]
    for cell in cells.expected:
        if cell in cells.gaps:
            gap = cells.gaps[cell]
            found.append(Check("error", f"{gap.kind}: {gap.text}", cell))
        else:
            found += [Check(level, text, cell) for level, text in _single(cells.summaries[cell])]
    return sorted(found, key=lambda check: LEVELS.index(check.level))


def unreal_backends(cells: Cells) -> dict[str, int]:
    """Backends that are no language model, and how many finished cells used them."""
    counts = Counter(summary.backend for _, summary in cells.done())
    return {name: n for name, n in sorted(counts.items()) if name not in REAL_BACKENDS}


def _sweep(cells: Cells) -> Iterator[Check]:
    """The sweep as a whole."""
    if not cells.expected:
        yield Check("error", "the sweep has no cells")
        return
    done = cells.done()
    if not done:
        yield Check("error", "no cell has finished")
    for ids in duplicates(done):
        yield Check("error", f"one run under {len(ids)} names: {', '.join(ids)} have the same config hash")
    seeds: dict[tuple, set[int]] = defaultdict(set)
    for cell in cells.expected:
        seeds[cell.dataset, cell.mode, cell.algorithm, cell.arm, cell.k, cell.decoupled].add(cell.seed)
    fewest = min(map(len, seeds.values()))
    if fewest < CLAIM_N:
        yield Check("note", f"n = {fewest}: a claim needs {CLAIM_N} seeds, so the report makes none there")


def _bounds(cells: Cells) -> Iterator[Check]:
    """A K that cannot bind, or that changed nothing."""
    groups: dict[tuple, list[Summary]] = defaultdict(list)
    for cell, summary in cells.done():
        if float(cell.k) > 0:
            groups[cell.dataset, cell.mode, cell.algorithm, cell.arm, cell.k, cell.decoupled].append(summary)
    for (dataset, mode, algorithm, arm, k, decoupled), group in groups.items():
        name = f"{dataset}, {mode}, {algorithm}, {arm or 'base'}, decoupled {decoupled}, K = {k}"
        oldest = max(summary.staleness_max for summary in group)
        updates = min(summary.updates for summary in group)
        inert = sum(summary.staleness_max < 1 for summary in group)
        if inert:
            yield Check(
                "warning",
                f"{name}: inert in {inert} of {len(group)} cells, which trained no token older "
                "than 0 versions",
            )
        if k == "inf":
            continue
        if updates < 4 * (k + 1):
            yield Check("warning", f"{name}: cannot bind within {updates} updates; it takes {4 * (k + 1)}")
        elif 1 <= oldest < k:
            yield Check("note", f"{name}: never bound, the oldest trained token was {oldest} versions old")


def _inert(cells: Cells) -> Iterator[Check]:
    """A measure that stayed exactly 0 in every cell of one variant, over all of K and all seeds."""
    groups: dict[tuple, list[Summary]] = defaultdict(list)
    for cell, summary in cells.done():
        groups[cell.dataset, cell.mode, cell.algorithm, cell.arm, cell.decoupled].append(summary)
    for (dataset, mode, algorithm, arm, decoupled), group in groups.items():
        name = f"{dataset}, {mode}, {algorithm}, {arm or 'base'}, decoupled {decoupled}"
        bounds = ", ".join(map(str, sorted({summary.k for summary in group}, key=float)))
        for measure, what in _at_work(group[0]):
            if not any(getattr(summary, measure) for summary in group):
                yield Check(
                    "note",
                    f"{name}: inert, {what} never acted: {measure} is 0 in all {len(group)} cells "
                    f"(K = {bounds}, {group[0].minibatches} minibatches)",
                )


def _at_work(summary: Summary) -> Iterator[tuple[str, str]]:
    """Measures that tell whether a part of the objective acted at all, and the part."""
    if summary.objective in CLIPPING:
        yield "clip_fraction", "clipping"
    weight = summary.config.get("objective", {}).get("weight")
    if summary.objective == "dis" or (summary.objective, weight) == ("decoupled", "mask"):
        yield "mask_fraction", "the mask on the importance weight"


def _origins(cells: Cells) -> Iterator[Check]:
    """Cells that were not made alike."""
    done = [summary for _, summary in cells.done()]
    for text in _differences(done, lambda summary: summary.software):
        yield Check("warning", f"cells were made by different software: {text}")
    for text in _differences(done, lambda summary: summary.machine):
        yield Check("warning", f"cells ran on different machines, so their speeds do not compare: {text}")


def _differences(done: Iterable[Summary], part: Callable[[Summary], dict]) -> Iterator[str]:
    for key, values in tally(done, part).items():
        if len(values) > 1:
            yield f"{key} is " + ", ".join(f"{value} ({n} cells)" for value, n in values.items())


def tally(done: Iterable[Summary], part: Callable[[Summary], dict]) -> dict[str, dict[str, int]]:
    """For each key of a part of the summaries: its values, and in how many cells they stand."""
    records = [part(summary) for summary in done]
    keys = sorted({key for record in records for key in record})
    return {
        key: dict(sorted(Counter(str(record.get(key, "not given")) for record in records).items()))
        for key in keys
    }


def _single(summary: Summary) -> Iterator[tuple[Level, str]]:
    """One finished cell."""
    if float(summary.k) < summary.staleness_max:
        yield "error", f"trained a token {summary.staleness_max} versions old, above K = {summary.k}"
    for what, flow in (("samples", summary.samples), ("tokens", summary.tokens)):
        if flow.generated != _accounted(flow):
            yield (
                "error",
                f"{what} do not add up: {flow.generated} generated, {_accounted(flow)} accounted for",
            )
    ages = summary.staleness_histogram.trained
    oldest = max((int(age) for age, count in ages.items() if count), default=0)
    if oldest != summary.staleness_max:
        yield "error", f"staleness_max is {summary.staleness_max}, the oldest trained token was {oldest} old"
    trained = sum(ages.values())
    if trained != summary.tokens.trained:
        yield "error", f"ages of {trained} trained tokens are known, {summary.tokens.trained} were trained"
    if summary.status == "collapsed":
        yield "warning", "the policy collapsed"
    if summary.attempts > 1:
        yield "warning", f"needed {summary.attempts} attempts: left out of comparisons of speed"
    if summary.infrastructure_failures:
        yield "warning", f"{summary.infrastructure_failures} answers could not be judged"
    if not summary.eval_pass_rate:
        yield "warning", "was never evaluated on held-out tasks"
    if summary.empty_updates:
        yield "note", f"nothing was trainable in {summary.empty_updates} of {summary.updates} updates"


def _accounted(flow: Flow) -> int:
    return flow.trained + sum(flow.dropped.values()) + flow.abandoned
