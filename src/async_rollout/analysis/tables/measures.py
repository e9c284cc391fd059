"""Every measure of every group of seeds with all its statistics: for programs, and for whoever plots."""

import math
from collections.abc import Iterator

import pandas as pd

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.columns import RATES
from async_rollout.analysis.groups import GROUP, PARTS, Group, seed_groups
from async_rollout.analysis.statistics import Estimate, estimate
from async_rollout.analysis.tables.headline import best_rate, dropped_share, last_rate, mean_rate, share
from async_rollout.config.report import ReportConfig
from async_rollout.records.summary import Summary

FIELDS = (  # of a summary, as they are
    "pass_rate_first",
    "pass_rate_last",
    "reward_mean",
    "staleness_mean",
    "staleness_max",
    "interruptions",
    "resumed_samples",
    "mixed_version_samples",
    "recomputed_tokens",
    "recompute_sec",
    "clip_fraction",
    "mask_fraction",
    "importance_weight_max",
    "ess_ratio",
    "kl",
    "entropy",
    "grad_norm",
    "grad_cosine",
    "zero_variance_groups",
    "value_loss",
    "explained_variance",
    "lost_sec",
    "attempts",
)
SPEEDS = ("trained_tokens_per_sec", "generated_tokens_per_sec", "updates_per_sec", "wall_clock_sec")
DERIVED = {
    "eval_sampled_last": last_rate,
    "eval_sampled_best": best_rate,
    "eval_sampled_mean": mean_rate,
    "dropped_token_share": dropped_share,
    "length_ratio": lambda summary: share(summary.length_mean_trained, summary.length_mean_generated),
    "cpu_seconds": lambda summary: sum(summary.cpu_seconds.values()),
}
_RATES = RATES | {"eval_sampled_best", "eval_sampled_mean", "clip_fraction", "mask_fraction"}
_RATES |= {"ess_ratio", "zero_variance_groups"}


def analysis_aggregated(cells: Cells, report: ReportConfig) -> pd.DataFrame:
    """A row for each combination of `GROUP` and each measure: n, mean, deviation, both intervals.

    Speeds leave out cells that needed more than one attempt; what a run did not measure has n = 0.
    """
    rows = [
        group.axes | {"seeds": group.seeds, "measure": name, "n": found.n} | _parts(found)
        for group in seed_groups(cells)
        for name, found in _estimates(group)
    ]
    return pd.DataFrame(rows, columns=[*GROUP, "seeds", "measure", "n", *PARTS])


def _estimates(group: Group) -> Iterator[tuple[str, Estimate]]:
    for name in FIELDS:
        yield name, _within(name, group.by_seed(lambda summary, name=name: _number(summary, name)))
    for name, value in DERIVED.items():
        yield name, _within(name, group.by_seed(value))
    for name in SPEEDS:
        yield name, _within(name, group.timed(lambda summary, name=name: _number(summary, name)))


def _within(name: str, values: dict[int, float]) -> Estimate:
    found = estimate(list(values.values()))
    return found.within(0.0, 1.0) if name in _RATES else found


def _number(summary: Summary, name: str) -> float:
    """A field as a number; NaN where it was not measured."""
    value = getattr(summary, name)
    return math.nan if value is None else float(value)


def _parts(found: Estimate) -> dict[str, float]:
    return {part: getattr(found, part) for part in PARTS}
