"""The report's sentences by chapter, each filled from the tables: they change when the data does.

A difference is claimed only where `statistics.Claim` holds, so never with fewer than three
seeds; otherwise the sentence gives the numbers and says that none is.
"""

import math
from collections.abc import Mapping

import pandas as pd

from async_rollout.analysis.columns import NOT_REACHED
from async_rollout.analysis.comparisons import algorithms, objectives, with_sync
from async_rollout.analysis.phrases import estimate_of, listed, number, variant, verdict
from async_rollout.analysis.statistics import CLAIM_N
from async_rollout.analysis.tables.headline import DEFAULT_THRESHOLD
from async_rollout.config.report import ReportConfig

MODE = "areal"
FINISHED = ("done", "collapsed")
CLAIMED = {
    "higher": "faster",
    "lower": "slower",
    "no difference shown": "without a difference shown",
    "too few seeds": "with too few seeds for a claim",
}
AXES = ["mode", "algorithm", "arm", "objective", "decoupled"]


def sentences(tables: Mapping[str, pd.DataFrame], report: ReportConfig) -> dict[str, list[str]]:
    """What one dataset's tables say, by the name of the chapter; a chapter without a sentence is left out."""
    headline, k = tables["summary_headline"], report.k_headline
    done = headline[headline["status"].isin(FINISHED)]
    failed = _failures(tables["failures"], headline)
    if done.empty:
        return {"headline": ["No cell has finished, so there is nothing to say yet."], "failures": failed}
    at = done[(done["mode"] == MODE) & (done["k"] == k)]
    said = {
        "headline": [*_gains(done), *_speeds(tables["speedups"], at, k), *with_sync(done, MODE, k)],
        "throughput": [*_faster(tables["speedups"]), *_paper(tables["throughput_paper_comparison"])],
        "staleness": [*_ages(at, k), *_versus_k0(tables["table2_staleness_vs_pass_rate"]), *objectives(done)],
        "learning": _thresholds(done, report),
        "algorithms": algorithms(done),
        "failures": failed,
    }
    return {chapter: found for chapter, found in said.items() if found}


def _gains(done: pd.DataFrame) -> list[str]:
    gain = (done["eval_sampled_last"] - done["eval_sampled_first"]).dropna()
    if gain.empty:
        return ["No finished cell was evaluated on held-out tasks."]
    return [
        f"{(gain > 0).sum()} of {len(gain)} evaluated cells ended with a higher held-out pass rate than they "
        f"began with; the changes lie between {gain.min():+.3f} and {gain.max():+.3f}."
    ]


def _speeds(speedups: pd.DataFrame, at: pd.DataFrame, k: int) -> list[str]:
    """Speed of each variant of `MODE` at the headline's K against sync."""
    if at.empty:
        return [f"No finished {MODE} cell has K = {k} (`report.k_headline`), so no headline compares it."]
    rows = speedups[(speedups["mode"] == MODE) & (speedups["k"] == k)].to_dict("records")
    return [f"Speed, {variant(row)}: {_speed(row, k)}." for row in rows]


def _speed(row: Mapping, k: int) -> str:
    if row["baseline"] == "missing":
        return "the sweep has no sync cell of this algorithm and arm to compare with"
    ratio = estimate_of(row, "ratio")
    if not ratio.n:
        return f"no seed has finished both {MODE} with K = {k} and sync at the first attempt"
    each = estimate_of(row, "ratio_per_unit")
    shared = "" if math.isnan(each.mean) else f". For each core or GPU that is {each.mean:.2f} times as many"
    if shared and each.n >= CLAIM_N:
        shared += f", {verdict(each, 1.0, '.2f')}"
    differ = row["baseline_objective"] != row["objective"]
    other = f" (sync has the {row['baseline_objective']} objective: the schedule is not all that differs)"
    return (
        f"{MODE} with K = {k} on {row['compute']} trained {ratio.mean:.2f} times as many tokens a second as "
        f"sync{_of_base(row)} on {row['baseline_compute']}, {verdict(ratio, 1.0, '.2f')}{shared}"
        f"{other * differ}"
    )


def _of_base(row: Mapping) -> str:
    """Says that the arm is compared with the base arm's sync, as the sweep has none of its own."""
    own = f"sync-{row['algorithm']}-{row['arm']}-k"
    alike = row["arm"] == "base" or row["baseline"].startswith(own)
    return "" if alike else f" (of the base arm: {row['baseline']})"


def _faster(speedups: pd.DataFrame) -> list[str]:
    """How many combinations were faster than sync, and how the fastest relates to its bound."""
    rows = speedups[(speedups["pairs"] > 0) & (speedups["k"] != 0)]
    if rows.empty:
        return ["No asynchronous run can be compared with a synchronous one."]
    claims = rows["claim"].value_counts()
    counts = [f"{n} {CLAIMED[claim]}" for claim, n in claims.items()]
    said = [
        f"Of {number(len(rows), 'asynchronous combination')} with K above 0, each against sync of its "
        f"algorithm and arm (or of the base arm, see column baseline): {listed(counts)}."
    ]
    best = rows.loc[rows["ratio_mean"].idxmax()]
    ratio = estimate_of(best, "ratio")
    bound = "" if pd.isna(best["bound"]) else f" Overlap alone could give {best['bound']:.2f}."
    said.append(
        f"The largest ratio is {ratio.mean:.2f} ({best['mode']}, {variant(best)}, K = {best['k']}), "
        f"{verdict(ratio, 1.0, '.2f')}. It was picked for being the largest.{bound}"
    )
    return said


def _paper(comparison: pd.DataFrame) -> list[str]:
    """Speed at each K relative to K = 0, beside what AReaL published."""
    said = []
    rows = comparison[(comparison["pairs"] > 0) & (comparison["k"] != 0)]
    for _, group in rows.groupby(AXES, sort=False):
        first, n = group.iloc[0], sorted({int(pairs) for pairs in group["pairs"]})
        parts = [
            f"{row['ratio_k0_mean']:.2f} at K = {row['k']}"
            + ("" if pd.isna(row["published"]) else f" (AReaL: {row['published']:.2f})")
            for row in group.to_dict("records")
        ]
        shown = [f"K = {k}" for k in group[group["claim"] == "higher"]["k"]]
        claim = f"faster than K = 0 is shown for {listed(shown)}" if shown else "no K is shown to be faster"
        said.append(
            f"{first['mode']}, {variant(first)}: relative to its own K = 0, which is no synchronous "
            f"baseline, speed was {listed(parts)}; n = {listed(list(map(str, n)))} pairs of seeds, {claim}."
        )
    return said


def _ages(at: pd.DataFrame, k: int) -> list[str]:
    if at.empty:
        return []
    oldest = int(at["staleness_max"].max())
    steps = int((at["staleness_max"] * at["minibatches"]).max())
    mean, share = at["staleness_mean"].mean(), at["dropped_token_share"].max()
    dropped = (
        f"at most {share:.1%} of a cell's generated tokens were dropped" if share > 0 else "none was dropped"
    )
    return [
        f"Staleness: in {MODE} with K = {k} trained tokens were {mean:.2f} policy versions old on "
        f"average over {number(len(at), 'cell')}, {oldest} at most ({steps} optimizer steps); {dropped}."
    ]


def _versus_k0(table: pd.DataFrame) -> list[str]:
    """What each variant's largest K did to its last held-out pass rate."""
    said = []
    rows = table[table["pairs"].fillna(0) > 0]
    for _, group in rows.groupby(AXES, sort=False):
        row = group.loc[group["k"].astype(float).idxmax()]
        change = estimate_of(row, "versus_k0")
        said.append(
            f"{row['mode']}, {variant(row)}: the last held-out pass rate at K = {row['k']} differs from that "
            f"at K = 0 by {change.mean:+.3f}, {verdict(change, 0.0, '+.3f')}."
        )
    return said


def _thresholds(done: pd.DataFrame, report: ReportConfig) -> list[str]:
    """Who got to the threshold, and when; the median is over all, those that never did included."""
    known = done["updates_to_threshold"].dropna()
    if known.empty:
        return []
    threshold = report.pass_threshold.get(done["dataset"].iloc[0], DEFAULT_THRESHOLD)
    reached, median = known[known != NOT_REACHED], known.median()
    half = "half of them or more never did" if math.isinf(median) else f"the median after {median:g}"
    when = f"; the fastest after {int(reached.min())} updates, {half}" if len(reached) else ""
    return [
        f"{len(reached)} of {number(len(known), 'evaluated cell')} reached the threshold of pass rate, "
        f"{threshold:g}{when}."
    ]


def _failures(failures: pd.DataFrame, headline: pd.DataFrame) -> list[str]:
    if failures.empty:
        return [f"Nothing failed: all {number(len(headline), 'cell')} finished at the first attempt."]
    counts = failures.groupby("kind", sort=False)["cell"].nunique()
    kinds = [f"{n} {kind}" for kind, n in counts.items()]
    look = failures["cell"].nunique()
    return [f"{look} of {len(headline)} cells: {listed(kinds)}."]
