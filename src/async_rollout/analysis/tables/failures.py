"""Cells that are missing, failed, collapsed, damaged, or needed more than one attempt."""

from collections.abc import Iterator

import pandas as pd

from async_rollout.analysis.collect import Cells, Gap
from async_rollout.analysis.standing import standing
from async_rollout.config.cells import Cell
from async_rollout.config.report import ReportConfig
from async_rollout.records.summary import Summary

COLUMNS = ("cell", "dataset", "kind", "attempts", "last_state", "reason", "detail", "lost_sec")


def failures(cells: Cells, report: ReportConfig) -> pd.DataFrame:
    """A row for each such cell; `last_state`, `reason` and `detail` are what its `states.jsonl` ends with."""
    rows = []
    for cell in cells.expected:
        if cell in cells.gaps:
            rows.append(_gap(cell, cells.gaps[cell], cells.under_way))
        else:
            rows += _finished(cell, cells.summaries[cell], cells.damaged_logs.get(cell))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _gap(cell: Cell, gap: Gap, under_way: bool) -> dict[str, object]:
    row = {"cell": cell.id, "dataset": cell.dataset, "kind": standing(gap, under_way)}
    state = gap.state
    if state is None:
        return row | {"detail": gap.text}
    detail = gap.text if gap.kind == "broken" or not state.detail else state.detail
    return row | {
        "attempts": state.attempt,
        "last_state": state.state,
        "reason": state.reason,
        "detail": detail,
    }


def _finished(cell: Cell, summary: Summary, damage: str | None) -> Iterator[dict[str, object]]:
    row = {
        "cell": cell.id,
        "dataset": cell.dataset,
        "attempts": summary.attempts,
        "last_state": summary.status,
        "lost_sec": summary.lost_sec,
    }
    if summary.status == "collapsed":
        text = f"training pass rate {summary.pass_rate_last:.3f} at the end, after {summary.updates} updates"
        yield row | {"kind": "collapsed", "detail": text}
    if summary.attempts > 1:
        text = f"finished at attempt {summary.attempts}: left out of comparisons of speed"
        yield row | {"kind": "retried", "detail": text}
    if damage:
        yield row | {"kind": "damaged", "detail": damage}
