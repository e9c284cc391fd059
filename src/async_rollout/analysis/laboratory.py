"""What staleness does to learning: final and best held-out pass rate by objective and K.

Intervals are Student's t over seeds (statistics.py). `best` is the highest pass rate among a
run's own evaluations, so its mean is biased upwards, more so where evaluations are small.
"""

import pandas as pd

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.statistics import Estimate, estimate
from async_rollout.config.cells import Cell
from async_rollout.records.summary import Summary

MEASURES = {"final": "last version", "best": "best version", "mean": "mean over the run's evaluations"}
_AXES = ["dataset", "mode", "algorithm", "arm", "objective", "minibatches", "k"]
COLUMNS = [*_AXES, "k_steps", "staleness_mean", "n", "collapsed"]
COLUMNS += [f"{measure}_{part}" for measure in MEASURES for part in ("mean", "low", "high")]


def staleness_laboratory(cells: Cells) -> pd.DataFrame:
    """A row for each mode, algorithm, arm, objective and K whose cells were evaluated; ordered like them."""
    groups: dict[tuple, list[Summary]] = {}
    for cell, summary in cells.done():
        if summary.eval_pass_rate:
            groups.setdefault(_place(cell, summary), []).append(summary)
    return pd.DataFrame([_row(place, found) for place, found in groups.items()], columns=COLUMNS)


def display(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as text: a mean and its 95 % interval become one."""
    shown = frame[["mode", "algorithm", "arm", "objective"]].copy()
    shown["M"], shown["K"], shown["n"] = (frame[name].astype(str) for name in ("minibatches", "k", "n"))
    shown["staleness"] = frame["staleness_mean"].map("{:.1f}".format)
    for measure, meaning in MEASURES.items():
        parts = frame[[f"{measure}_{part}" for part in ("mean", "low", "high")]]
        shown[f"pass rate, {meaning}"] = [_interval(*row) for row in parts.itertuples(index=False)]
    shown["collapsed"] = frame["collapsed"].astype(str)
    return shown


def _place(cell: Cell, summary: Summary) -> tuple:
    arm = cell.arm or "base"
    return cell.dataset, cell.mode, cell.algorithm, arm, summary.objective, summary.minibatches, cell.k


def _row(place: tuple, found: list[Summary]) -> dict[str, object]:
    ages = estimate([summary.staleness_mean for summary in found]).mean
    row = dict(zip(_AXES, place, strict=True)) | {
        "k_steps": float(found[0].k) * found[0].minibatches,
        "staleness_mean": ages,
        "n": len(found),
        "collapsed": sum(summary.status == "collapsed" for summary in found),
    }
    for measure, value in _estimates(found).items():
        row |= {f"{measure}_{part}": getattr(value, part) for part in ("mean", "low", "high")}
    return row


def _estimates(found: list[Summary]) -> dict[str, Estimate]:
    rates = [[p.sampled for p in sorted(s.eval_pass_rate, key=lambda p: p.version)] for s in found]
    return {
        "final": estimate([run[-1] for run in rates]),
        "best": estimate([max(run) for run in rates]),
        "mean": estimate([sum(run) / len(run) for run in rates]),
    }


def _interval(mean: float, low: float, high: float) -> str:
    return f"{mean:.3f}" if low != low else f"{mean:.3f} [{low:.3f}, {high:.3f}]"  # NaN: one seed
