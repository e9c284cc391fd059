"""Training pass rate by window of updates: how an algorithm learns, without an evaluation."""

import math
from collections.abc import Iterator

import pandas as pd

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.groups import GROUP, Group, column_names, estimate_columns, seed_groups
from async_rollout.analysis.statistics import estimate
from async_rollout.config.report import ReportConfig

WINDOWS = 10  # a run, where `report.window` does not say how long one is


def windowed_accuracy(cells: Cells, report: ReportConfig) -> pd.DataFrame:
    """A row for each group of seeds and each window of `report.window` updates.

    `rate` is correct ÷ judged training samples of a window, pooled within a cell, then averaged over
    seeds. A group without any metrics has one row without a window.
    """
    rows = [row for group in seed_groups(cells) for row in _rows(group, cells, report.window)]
    columns = [*GROUP, "seeds", "window_first", "window_last", "n", *column_names("rate")]
    return pd.DataFrame(rows, columns=columns)


def window_of(updates: int, asked: int | None) -> int:
    """Updates a window: as asked, or a tenth of the run."""
    return asked or max(1, math.ceil(updates / WINDOWS))


def _rows(group: Group, cells: Cells, asked: int | None) -> Iterator[dict[str, object]]:
    logs = [cells.commits[cell] for cell, _ in group.done if cell in cells.commits]
    head = group.axes | {"seeds": group.seeds}
    longest = max(map(len, logs), default=0)
    if not longest:
        yield head | {"n": 0}
        return
    window = window_of(longest, asked)
    rates = [log.pass_rates(window) for log in logs]
    for i in range(math.ceil(longest / window)):
        known = [run[i] for run in rates if i < len(run) and not math.isnan(run[i])]
        span = {"window_first": i * window + 1, "window_last": min((i + 1) * window, longest)}
        yield head | span | {"n": len(known)} | estimate_columns("rate", estimate(known))
