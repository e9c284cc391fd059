"""Means over seeds, as a reader wants them."""

import math

import pandas as pd

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.columns import AGGREGATED, COLUMNS, NOT_REACHED
from async_rollout.analysis.groups import GROUP, column_names, estimate_columns
from async_rollout.analysis.statistics import estimate
from async_rollout.analysis.tables.headline import summary_headline
from async_rollout.config.report import ReportConfig

_AXES = ["dataset", "mode", "algorithm", "arm", "k", "decoupled"]
_COUNTS = ["seeds", "n", "collapsed", "timed_n", "reached", "staleness_max"]
_SPREAD = ("mean", "std")
_FINISHED = ("done", "collapsed")


def mode_aggregate(cells: Cells, report: ReportConfig) -> pd.DataFrame:
    """Mean and standard deviation (ddof 1) over seeds, a row for each combination of `GROUP`.

    `seeds` counts the cells asked for, `n` those that finished. Speeds are averaged over the
    cells with one attempt only (`timed_n`).
    """
    rows = []
    for axes, group in _groups(cells, report):
        done = group[group["status"].isin(_FINISHED)]
        timed = _timed(done)
        row = axes | {
            "seeds": len(group),
            "n": len(done),
            "collapsed": int((done["status"] == "collapsed").sum()),
            "timed_n": len(timed),
            "reached": _reached(done),
            "staleness_max": done["staleness_max"].max(),
        }
        for name in AGGREGATED:
            row |= estimate_columns(name, estimate(_known(done, name)), parts=_SPREAD)
        rows.append(row)
    columns = [*GROUP, *_COUNTS, *column_names(*AGGREGATED, parts=_SPREAD)]
    return pd.DataFrame(rows, columns=columns)


def _groups(cells: Cells, report: ReportConfig):
    """Rows that differ in seed only, with what they share. A missing cell, whose objective and M nobody
    may know, joins its seeds."""
    headline = summary_headline(cells, report)
    for _, group in headline.groupby(_AXES, sort=False):
        yield {name: _first(group[name]) for name in GROUP}, group


def _timed(done: pd.DataFrame) -> pd.DataFrame:
    return done[done["attempts"] == 1]


def _known(done: pd.DataFrame, name: str) -> list[float]:
    return list((_timed(done) if COLUMNS[name].timed else done)[name].dropna())


def _first(values: pd.Series) -> object:
    known = values.dropna()
    return known.iloc[0] if len(known) else math.nan


def _reached(done: pd.DataFrame) -> str:
    """`2 of 3`: cells that reached the threshold of those that were evaluated."""
    known = done["updates_to_threshold"].dropna()
    return f"{(known != NOT_REACHED).sum()} of {len(known)}"
