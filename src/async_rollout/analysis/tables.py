"""The tables: plain frames with one function each, and how they are written.

`.csv` holds the numbers, `.md` what a reader wants to see. A cell that was asked for has a
row, also when it is missing.
"""

import math
from pathlib import Path

import pandas as pd

from async_rollout.analysis import laboratory
from async_rollout.analysis.collect import FRAME, Cells
from async_rollout.analysis.columns import AGGREGATED, COLUMNS, NOT_REACHED, show, show_spread
from async_rollout.analysis.statistics import estimate
from async_rollout.config.report import ReportConfig
from async_rollout.records.files import write_text
from async_rollout.records.summary import Summary

DEFAULT_THRESHOLD = 0.10
GROUP = ["dataset", "mode", "algorithm", "arm", "objective", "k", "decoupled", "minibatches", "k_steps"]
_HEADLINE = list(COLUMNS)[: list(COLUMNS).index("backend") + 1]


def summary_headline(cells: Cells, report: ReportConfig) -> pd.DataFrame:
    """A row a cell, with the columns of `COLUMNS` up to `backend`."""
    values = {
        cell.id: _headline(summary, report.pass_threshold.get(cell.dataset, DEFAULT_THRESHOLD))
        for cell, summary in cells.done()
    }
    frame = cells.frame.merge(
        pd.DataFrame(values.values(), columns=_values(), index=values.keys()),
        how="left",
        left_on="cell",
        right_index=True,
    )
    frame["arm"] = frame["arm"].replace("", "base")
    return frame[_HEADLINE]


def mode_aggregate(headline: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation (ddof 1) over seeds, a row for each combination of `GROUP`.

    `seeds` counts the cells asked for, `n` those that finished. Speeds are averaged over the
    cells with one attempt only (`timed_n`).
    """
    rows = []
    for _, group in _groups(headline):
        done = group[group["status"].isin(["done", "collapsed"])]
        timed = done[done["attempts"] == 1]
        row = {name: _first(group[name]) for name in GROUP}
        collapsed = int((done["status"] == "collapsed").sum())
        row |= {
            "seeds": len(group),
            "n": len(done),
            "collapsed": collapsed,
            "timed_n": len(timed),
            "reached": _reached(done),
            "staleness_max": done["staleness_max"].max(),
        }
        for name in AGGREGATED:
            values = (timed if COLUMNS[name].timed else done)[name].dropna()
            spread = estimate(list(values))
            row |= {f"{name}_mean": spread.mean, f"{name}_std": spread.std}
        rows.append(row)
    spread = [f"{name}_{part}" for name in AGGREGATED for part in ("mean", "std")]
    return pd.DataFrame(
        rows, columns=[*GROUP, "seeds", "n", "collapsed", "timed_n", "reached", "staleness_max", *spread]
    )


def display(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as text under the labels of its columns; a mean and its deviation become one."""
    shown = {}
    for name in frame:
        stem = name.removesuffix("_mean")
        if name in COLUMNS:
            shown[COLUMNS[name].label] = [show(name, value) for value in frame[name]]
        elif stem in COLUMNS:
            pairs = zip(frame[name], frame[f"{stem}_std"], strict=True)
            shown[COLUMNS[stem].label] = [show_spread(stem, mean, std) for mean, std in pairs]
    return pd.DataFrame(shown, dtype=object)


def write_tables(cells: Cells, directory: Path, report: ReportConfig) -> None:
    """`summary_headline`, `mode_aggregate` and `staleness_laboratory` as csv and md in `directory`."""
    headline = summary_headline(cells, report)
    for name, frame in (("summary_headline", headline), ("mode_aggregate", mode_aggregate(headline))):
        write_table(frame, display(frame), directory / name)
    learned = laboratory.staleness_laboratory(cells)
    write_table(learned, laboratory.display(learned), directory / "staleness_laboratory")


def write_table(frame: pd.DataFrame, shown: pd.DataFrame, stem: Path) -> None:
    """`stem`.csv holds the frame, `stem`.md the texts that show it."""
    plain = frame.replace({"updates_to_threshold": {NOT_REACHED: "not reached"}})
    write_text(stem.with_name(f"{stem.name}.csv"), plain.to_csv(index=False, float_format="%.10g"))
    text = shown.map(_markdown).to_markdown(index=False, tablefmt="github", disable_numparse=True)
    write_text(stem.with_name(f"{stem.name}.md"), text + "\n")


def _values() -> list[str]:
    """Columns of the headline that come from a summary."""
    return [name for name in _HEADLINE if name not in FRAME]


def _headline(summary: Summary, threshold: float) -> dict[str, object]:
    evals = sorted(summary.eval_pass_rate, key=lambda point: point.version)
    reached = [point.updates for point in evals if point.sampled >= threshold]
    tokens = summary.tokens
    return {
        "objective": summary.objective,
        "minibatches": summary.minibatches,
        "k_steps": float(summary.k) * summary.minibatches,
        "updates": summary.updates,
        "pass_rate_first": summary.pass_rate_first,
        "pass_rate_last": summary.pass_rate_last,
        "eval_sampled_first": evals[0].sampled if evals else math.nan,
        "eval_sampled_last": evals[-1].sampled if evals else math.nan,
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
        "dropped_token_share": _share(sum(tokens.dropped.values()), tokens.generated),
        "length_ratio": _share(summary.length_mean_trained, summary.length_mean_generated),
        "attempts": summary.attempts,
        "backend": summary.backend,
    }


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _groups(headline: pd.DataFrame):
    """Rows that differ in seed only. A missing cell, whose objective and M nobody knows, joins its
    seeds."""
    axes = ["dataset", "mode", "algorithm", "arm", "k", "decoupled"]
    return headline.groupby(axes, sort=False)


def _first(values: pd.Series) -> object:
    known = values.dropna()
    return known.iloc[0] if len(known) else math.nan


def _reached(done: pd.DataFrame) -> str:
    """`2 of 3`: cells that reached the threshold of those that were evaluated."""
    known = done["updates_to_threshold"].dropna()
    return f"{(known != NOT_REACHED).sum()} of {len(known)}"


def _markdown(text: str) -> str:
    """Text that stays within its cell and brings no markup of its own."""
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return " ".join(escaped.replace("`", "\\`").split())
