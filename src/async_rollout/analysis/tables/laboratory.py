"""What staleness does to learning: final and best held-out pass rate by objective and K.

`best` is the highest pass rate among a run's own evaluations, so its mean is biased upwards,
more so where evaluations are small.
"""

import math
from collections.abc import Iterable, Iterator

import pandas as pd

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.groups import GROUP, Group, column_names, estimate_columns, seed_groups
from async_rollout.analysis.statistics import Claim, estimate, paired_difference
from async_rollout.analysis.tables.headline import best_rate, last_rate, mean_rate
from async_rollout.config.report import ReportConfig

_INTERVAL = ("mean", "std", "low", "high")
_AXES = ["dataset", "mode", "algorithm", "arm", "objective", "minibatches", "k", "k_steps"]
_MEASURES = {"final": last_rate, "best": best_rate, "mean_eval": mean_rate}


def staleness_laboratory(cells: Cells, report: ReportConfig) -> pd.DataFrame:
    """A row for each mode, algorithm, arm, objective and K whose cells were evaluated; ordered like them."""
    columns = [*_AXES, "n", "collapsed", "staleness_mean"]
    columns += column_names(*_MEASURES, parts=_INTERVAL)
    return pd.DataFrame(_laboratory(seed_groups(cells)), columns=columns)


def table2_staleness_vs_pass_rate(cells: Cells, report: ReportConfig) -> pd.DataFrame:
    """AReaL's Table 2: final and best pass rate of each objective at each K, and what K changed.

    `versus_k0` is the final pass rate minus that of the same variant at K = 0, paired by seed.
    A row for every combination asked for, also where nothing has finished.
    """
    groups = seed_groups(cells)
    fresh = {_variant(group): group for group in groups if group.first.k == 0}
    rows = []
    for group in groups:
        final, best = group.by_seed(last_rate), group.by_seed(best_rate)
        base = fresh.get(_variant(group))
        change = paired_difference(final, base.by_seed(last_rate) if base else {})
        row = group.axes | {"seeds": group.seeds, "n": len(final), "collapsed": _collapsed(group)}
        row |= {"staleness_mean": _staleness(group)}
        row |= estimate_columns("final", estimate(list(final.values())))
        row |= estimate_columns("best", estimate(list(best.values())))
        if group.first.k != 0:
            row |= estimate_columns("versus_k0", change)
            row |= {"pairs": change.n, "claim": Claim(change).verdict}
        rows.append(row)
    columns = [*GROUP, "seeds", "n", "collapsed", "staleness_mean", *column_names("final", "best")]
    columns += [*column_names("versus_k0"), "pairs", "claim"]
    return pd.DataFrame(rows, columns=columns)


def _laboratory(groups: Iterable[Group]) -> Iterator[dict[str, object]]:
    for group in groups:
        evaluated = group.by_seed(last_rate)
        if not evaluated:
            continue
        row = {name: group.axes[name] for name in _AXES}
        row |= {"n": len(evaluated), "collapsed": _collapsed(group), "staleness_mean": _staleness(group)}
        for name, measure in _MEASURES.items():
            row |= estimate_columns(name, estimate(list(group.by_seed(measure).values())), parts=_INTERVAL)
        yield row


def _variant(group: Group) -> tuple:
    cell = group.first
    return cell.dataset, cell.mode, cell.algorithm, cell.arm, cell.decoupled


def _collapsed(group: Group) -> int:
    return sum(summary.status == "collapsed" for _, summary in group.done)


def _staleness(group: Group) -> float:
    """Mean age of trained tokens over the group's cells."""
    ages = [summary.staleness_mean for _, summary in group.done]
    return sum(ages) / len(ages) if ages else math.nan
