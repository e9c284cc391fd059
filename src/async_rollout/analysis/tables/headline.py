"""Every cell, finished or not: one row each."""

import math

import pandas as pd

from async_rollout.analysis.collect import FRAME, Cells
from async_rollout.analysis.columns import COLUMNS, NOT_REACHED
from async_rollout.config.report import ReportConfig
from async_rollout.records.summary import Summary

DEFAULT_THRESHOLD = 0.10
_HEADLINE = list(COLUMNS)[: list(COLUMNS).index("backend") + 1]
_VALUES = [name for name in _HEADLINE if name not in FRAME]  # columns that come from a summary
_PLANNED = ["objective", "minibatches", "k_steps"]  # and those known of a missing cell too


def summary_headline(cells: Cells, report: ReportConfig) -> pd.DataFrame:
    """A row a cell, with the columns of `COLUMNS` up to `backend`."""
    values = {
        cell.id: _headline(summary, report.pass_threshold.get(cell.dataset, DEFAULT_THRESHOLD))
        for cell, summary in cells.done()
    }
    for cell in cells.gaps.keys() & cells.plans.keys():
        plan = cells.plans[cell]
        values[cell.id] = dict.fromkeys(_VALUES, math.nan) | {
            "objective": plan.objective,
            "minibatches": plan.minibatches,
            "k_steps": _steps(cell.k, plan.minibatches),
            "backend": None,
        }
    frame = cells.frame.merge(
        pd.DataFrame(values.values(), columns=_VALUES, index=values.keys()),
        how="left",
        left_on="cell",
        right_index=True,
    )
    frame["arm"] = frame["arm"].replace("", "base")
    return frame[_HEADLINE]


def last_rate(summary: Summary) -> float:
    """Held-out pass rate, sampled, of the last version evaluated; NaN if there is none."""
    return _evaluations(summary)[-1].sampled if summary.eval_pass_rate else math.nan


def best_rate(summary: Summary) -> float:
    """The highest held-out pass rate, sampled, of a run's evaluations; NaN if there is none."""
    return max((point.sampled for point in summary.eval_pass_rate), default=math.nan)


def mean_rate(summary: Summary) -> float:
    """Mean held-out pass rate, sampled, over a run's evaluations; NaN if there is none."""
    rates = [point.sampled for point in summary.eval_pass_rate]
    return share(sum(rates), len(rates))


def dropped_share(summary: Summary) -> float:
    """Generated tokens that were dropped ÷ generated tokens."""
    return share(sum(summary.tokens.dropped.values()), summary.tokens.generated)


def share(part: float, whole: float) -> float:
    """`part` ÷ `whole`; NaN of nothing."""
    return part / whole if whole else math.nan


def _evaluations(summary: Summary) -> list:
    return sorted(summary.eval_pass_rate, key=lambda point: point.version)


def _steps(k: int | str, minibatches: int) -> float:
    return float(k) * minibatches


def _headline(summary: Summary, threshold: float) -> dict[str, object]:
    evals = _evaluations(summary)
    reached = [point.updates for point in evals if point.sampled >= threshold]
    return {
        "objective": summary.objective,
        "minibatches": summary.minibatches,
        "k_steps": _steps(summary.k, summary.minibatches),
        "updates": summary.updates,
        "pass_rate_first": summary.pass_rate_first,
        "pass_rate_last": summary.pass_rate_last,
        "eval_sampled_first": evals[0].sampled if evals else math.nan,
        "eval_sampled_last": last_rate(summary),
        "eval_greedy_last": evals[-1].greedy if evals else math.nan,
        "updates_to_threshold": (reached[0] if reached else NOT_REACHED) if evals else math.nan,
        "staleness_mean": summary.staleness_mean,
        "staleness_max": summary.staleness_max,
        "interruptions": summary.interruptions,
        "resumed_samples": summary.resumed_samples,
        "mixed_version_samples": summary.mixed_version_samples,
        "trained_tokens_per_sec": summary.trained_tokens_per_sec,
        "updates_per_sec": summary.updates_per_sec,
        "wall_clock_sec": summary.wall_clock_sec,
        "dropped_token_share": dropped_share(summary),
        "length_ratio": share(summary.length_mean_trained, summary.length_mean_generated),
        "attempts": summary.attempts,
        "backend": summary.backend,
    }
