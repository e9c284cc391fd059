"""Speed of what overlaps generation and training: against `sync`, and against itself at K = 0.

Trained tokens a second of wall clock, paired by seed; pairs from different machines, and cells
that needed several attempts, do not count. A ratio is a geometric mean. `areal` and `async` at
K = 0 are rows like the others and never the baseline of `speedups`.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.groups import (
    GROUP,
    RATIO_PARTS,
    Group,
    column_names,
    estimate_columns,
    seed_groups,
)
from async_rollout.analysis.plans import Compute, compute_of
from async_rollout.analysis.statistics import Claim, Estimate, estimate, paired_ratio
from async_rollout.config.axes import OVERLAPPING
from async_rollout.config.report import ReportConfig
from async_rollout.records.summary import Summary

AREAL_PUBLISHED = {0: 1.00, 1: 2.09, 2: 2.77, 4: 2.77, 8: 2.89, 16: 2.97, "inf": 3.08}  # Fig. 5c, to K = 0
_SPEED = ("mean", "std")
_ELSEWHERE = ("rollout", "staleness", "stress", "supervision", "checkpoint")  # `sync` learns without them


def speedups(cells: Cells, report: ReportConfig) -> pd.DataFrame:
    """Each overlapping group of seeds against `sync` of the same algorithm and arm.

    `ratio` compares each on its own resources, `ratio_per_unit` divides by what they compute
    with (cores, or GPUs; NaN where one has GPUs and the other has not). `bound` is
    (G + T) ÷ max(G, T) with the seconds of generation and training that `sync` measured: what overlap
    alone can give where neither gets slower. `overlap` is how many of the two were busy at
    once, on average, in the overlapping cells themselves.
    """
    groups = seed_groups(cells)
    rows = []
    for group in groups:
        if not group.overlaps:
            continue
        base = _baseline(group, groups)
        row = group.axes | {"seeds": group.seeds, "overlap": _overlap(group)}
        row |= _against(group, base, cells) if base else {"baseline": "missing", "pairs": 0}
        rows.append(row)
    columns = [*GROUP, "seeds", "baseline", "baseline_objective", "pairs", "compute", "baseline_compute"]
    columns += column_names("speed", "baseline_speed", parts=_SPEED)
    columns += [*column_names("ratio", parts=RATIO_PARTS), "claim"]
    columns += [*column_names("ratio_per_unit", parts=RATIO_PARTS), "claim_per_unit"]
    return pd.DataFrame(rows, columns=[*columns, "bound", "ratio_of_bound", "overlap"])


def throughput_paper_comparison(cells: Cells, report: ReportConfig) -> pd.DataFrame:
    """Ratios of speed to K = 0 of the same variant, beside what AReaL published in Fig. 5c.

    A K of the paper that the sweep did not ask for has a row with 0 seeds.
    """
    variants: dict[tuple, dict[int | str, Group]] = {}
    for group in seed_groups(cells):
        if group.overlaps:
            cell = group.first
            place = (cell.dataset, cell.mode, cell.algorithm, cell.arm, cell.decoupled)
            variants.setdefault(place, {})[cell.k] = group
    rows = [row for by_k in variants.values() for row in _comparison(by_k)]
    columns = [*GROUP, "seeds", "pairs", *column_names("ratio_k0", parts=RATIO_PARTS), "claim", "published"]
    return pd.DataFrame(rows, columns=columns)


def _comparison(by_k: Mapping[int | str, Group]) -> Iterator[dict[str, object]]:
    any_group = next(iter(by_k.values()))
    for k in sorted({*by_k, *AREAL_PUBLISHED}, key=float):
        published = AREAL_PUBLISHED.get(k, math.nan)
        if k not in by_k:
            steps = float(k) * any_group.minibatches if k else 0.0
            yield any_group.axes | {
                "k": k,
                "k_steps": steps,
                "seeds": 0,
                "pairs": 0,
                "published": published,
            }
            continue
        group = by_k[k]
        ratio = _speed_ratio(group, by_k[0]) if 0 in by_k else estimate([])
        row = group.axes | {"seeds": group.seeds, "pairs": ratio.n, "published": published}
        row |= estimate_columns("ratio_k0", ratio, parts=RATIO_PARTS)
        yield row | ({} if k == 0 else {"claim": Claim(ratio, 1.0).verdict})


def _against(group: Group, base: Group, cells: Cells) -> dict[str, object]:
    ratio = _speed_ratio(group, base)
    ours, theirs = _compute(group), _compute(base)
    bound = _bound(base, cells)
    return {
        "baseline": base.first.id.rsplit("-s", 1)[0],
        "baseline_objective": base.objective,
        "pairs": ratio.n,
        "compute": _named(ours),
        "baseline_compute": _named(theirs),
        **estimate_columns("speed", _speed(group), parts=_SPEED),
        **estimate_columns("baseline_speed", _speed(base), parts=_SPEED),
        **estimate_columns("ratio", ratio, parts=RATIO_PARTS),
        "claim": Claim(ratio, 1.0).verdict,
        **_per_unit(ratio, ours, theirs),
        "bound": bound,
        "ratio_of_bound": ratio.mean / bound,
    }


def _per_unit(ratio: Estimate, ours: Compute | None, theirs: Compute | None) -> dict[str, object]:
    if ours is None or theirs is None or ours.unit != theirs.unit:
        return {}
    each = ratio.scaled(theirs.amount / ours.amount)
    columns = estimate_columns("ratio_per_unit", each, parts=RATIO_PARTS)
    return columns | {"claim_per_unit": Claim(each, 1.0).verdict}


def _baseline(group: Group, groups: list[Group]) -> Group | None:
    """`sync` of the same algorithm and arm; where the sweep has none, of the base arm, if the arm
    changes only what `sync` does not have."""
    cell = group.first
    by_arm = {
        other.first.arm: other
        for other in groups
        if other.first.mode == "sync"
        and (other.first.dataset, other.first.algorithm) == (cell.dataset, cell.algorithm)
    }
    if cell.arm in by_arm:
        return by_arm[cell.arm]
    base = by_arm.get("")
    return base if base and _learns_alike(group, base) else None


def _learns_alike(group: Group, base: Group) -> bool:
    if not (group.done and base.done):
        return False
    (_, ours), (_, theirs) = group.done[0], base.done[0]
    return _learning(ours.config) == _learning(theirs.config)


def _learning(config: Mapping[str, Any]) -> dict[str, Any]:
    """The blocks that decide what is learned, but for the objective, which is an axis."""
    skipped = (*_ELSEWHERE, "objective")
    return {name: block for name, block in config.items() if isinstance(block, dict) and name not in skipped}


def _speed_ratio(group: Group, base: Group) -> Estimate:
    """Over seeds that both finished on the same machine at the first attempt."""
    theirs = {cell.seed: summary.machine for cell, summary in base.done}
    alike = {cell.seed for cell, summary in group.done if theirs.get(cell.seed) == summary.machine}
    ours = {seed: speed for seed, speed in group.timed(_tokens_per_sec).items() if seed in alike}
    return paired_ratio(ours, base.timed(_tokens_per_sec))


def _speed(group: Group) -> Estimate:
    return estimate(list(group.timed(_tokens_per_sec).values()))


def _tokens_per_sec(summary: Summary) -> float:
    return summary.trained_tokens_per_sec


def _compute(group: Group) -> Compute | None:
    """What the group's cells compute with; None if nobody knows, or if they differ."""
    found = {compute_of(cell.mode, summary.config) for cell, summary in group.done}
    return found.pop() if len(found) == 1 else None


def _named(compute: Compute | None) -> str | float:
    return math.nan if compute is None else str(compute)


def _bound(base: Group, cells: Cells) -> float:
    """Mean over the baseline's cells of (G + T) ÷ max(G, T), by their metrics."""
    logs = [cells.commits[cell] for cell, _ in base.done if cell in cells.commits]
    seconds = [(log.wait_sec.sum(), log.step_sec.sum()) for log in logs]
    return estimate([(g + t) / max(g, t) for g, t in seconds if max(g, t) > 0]).mean


def _overlap(group: Group) -> float:
    """Mean over cells of the busy shares of rollout and trainer together: between 0 and 2."""
    shares = [summary.busy_fraction for _, summary in group.done if group.first.mode in OVERLAPPING]
    return estimate([s["rollout"] + s["trainer"] for s in shares if {"rollout", "trainer"} <= s.keys()]).mean
