"""The sweep as a whole: what is missing, too thin, or there twice."""

from collections import defaultdict
from collections.abc import Iterator

from async_rollout.analysis.checks.check import Check
from async_rollout.analysis.checks.fingerprint import fingerprint
from async_rollout.analysis.collect import Cells, duplicates
from async_rollout.analysis.groups import seed_groups
from async_rollout.analysis.standing import standing
from async_rollout.analysis.statistics import CLAIM_N


def sizes(cells: Cells) -> Iterator[Check]:
    """A sweep without cells or results, or with too few seeds."""
    if not cells.expected:
        yield Check("error", "the sweep has no cells")
        return
    if not cells.done():
        yield Check("note" if cells.under_way else "error", "no cell has finished")
    fewest = min(group.seeds for group in seed_groups(cells))
    if fewest < CLAIM_N:
        yield Check("note", f"n = {fewest}: a claim needs {CLAIM_N} seeds, so the report makes none there")


def absent(cells: Cells) -> Iterator[Check]:
    """Cells without a usable summary. While the sweep is under way, what it will still make is no error."""
    queued = 0
    for cell in cells.expected:
        if cell not in cells.gaps:
            continue
        gap = cells.gaps[cell]
        state, kind = gap.state, standing(gap, cells.under_way)
        if kind == "queued":
            queued += 1
        elif kind == "damaged":
            yield Check("warning" if cells.under_way else "error", f"broken: {gap.text}", cell)
        elif kind == "running":
            yield Check("note", f"not finished yet: {state.state}, attempt {state.attempt}", cell)
        elif kind == "failed":
            why = ": ".join(filter(None, (state.reason, state.detail)))
            yield Check("error", f"failed at attempt {state.attempt}: {why}", cell)
        elif kind == "stopped":
            yield Check(
                "error", f"stopped while {state.state}, attempt {state.attempt}: no end on record", cell
            )
        else:
            yield Check("error", f"missing: {gap.text}", cell)
    if queued:
        yield Check("note", f"the sweep is under way: {queued} of {len(cells.expected)} cells are queued")


def copies(cells: Cells) -> Iterator[Check]:
    """One run under several names: the same configuration, or the same numbers and the same time."""
    done = cells.done()
    for ids in duplicates(done):
        yield Check("error", f"one run under {len(ids)} names: {', '.join(ids)} have the same config hash")
    twins: dict[tuple, list] = defaultdict(list)
    for cell, summary in done:
        twins[summary.wall_clock_sec, fingerprint(summary)].append((cell, summary.config_hash))
    for found in twins.values():
        if len({config_hash for _, config_hash in found}) > 1:
            ids = ", ".join(cell.id for cell, _ in found)
            yield Check(
                "error", f"one run under {len(found)} names: {ids} have the same numbers and wall clock"
            )
