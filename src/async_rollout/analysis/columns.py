"""What the columns of the tables are called, mean, and how their values are printed."""

import math
from dataclasses import dataclass

NOT_REACHED = math.inf  # updates to a threshold that no evaluation reached


@dataclass(frozen=True)
class Column:
    """`form` is a format spec, or `text`, `count` (thousands) or `percent`."""

    label: str
    form: str
    meaning: str
    aggregated: bool = False
    timed: bool = False  # cells with more than one attempt are left out of its mean


COLUMNS = {
    "cell": Column("cell", "text", "id of the cell: the name of its directory"),
    "dataset": Column("dataset", "text", "data source"),
    "mode": Column("mode", "text", "schedule: sync or asynchronous"),
    "algorithm": Column("algorithm", "text", "algorithm"),
    "arm": Column("arm", "text", "named set of overrides; `base` has none"),
    "objective": Column("objective", "text", "loss that was used"),
    "k": Column("K", "text", "largest staleness allowed, in policy versions"),
    "decoupled": Column("dec", "text", "sweep key `decoupled`"),
    "minibatches": Column("M", "count", "optimizer steps an update"),
    "k_steps": Column("K·M", "count", "largest staleness allowed, in optimizer steps"),
    "seed": Column("seed", "text", "seed"),
    "status": Column("status", "text", "done, collapsed, broken or missing"),
    "updates": Column("updates", "count", "commits"),
    "pass_rate_first": Column("train pass, first", ".3f", "training samples solved, first 10 %", True),
    "pass_rate_last": Column("train pass, last", ".3f", "training samples solved, last 10 %", True),
    "eval_sampled_first": Column("eval pass, first", ".3f", "held-out pass rate, sampled, version 0", True),
    "eval_sampled_last": Column("eval pass, last", ".3f", "held-out pass rate, sampled, last version", True),
    "eval_greedy_last": Column("eval greedy, last", ".3f", "held-out pass rate, greedy, last version", True),
    "updates_to_threshold": Column(
        "updates to threshold", "count", "updates until the held-out pass rate, sampled, was at the threshold"
    ),
    "staleness_mean": Column("staleness, mean", ".2f", "age of trained tokens in policy versions", True),
    "staleness_max": Column("staleness, max", "count", "age of the oldest trained token in versions"),
    "interruptions": Column("interruptions", "count", "times a worker took new weights in mid-sample"),
    "resumed_samples": Column("resumed", "count", "samples that went on under new weights"),
    "mixed_version_samples": Column("mixed", "count", "trained samples with tokens of more than one version"),
    "trained_tokens_per_sec": Column(
        "trained tok/s", ".1f", "trained tokens a second of wall clock", True, True
    ),
    "updates_per_sec": Column("updates/s", ".3f", "commits a second of wall clock", True, True),
    "wall_clock_sec": Column("wall s", ".1f", "seconds from all-ready to the last commit", True, True),
    "dropped_token_share": Column("dropped", "percent", "generated tokens that were dropped", True),
    "length_ratio": Column(
        "length ratio", ".3f", "mean length trained ÷ generated; below 1: biased to short answers", True
    ),
    "attempts": Column("attempts", "count", "starts that the cell needed"),
    "backend": Column("backend", "text", "causal_lm, or a backend that only tests the machinery"),
    "seeds": Column("seeds", "count", "cells that the sweep asked for"),
    "n": Column("n", "count", "cells that finished"),
    "collapsed": Column("collapsed", "count", "finished cells that collapsed"),
    "timed_n": Column("n timed", "count", "cells in the means of speed: one attempt only"),
    "reached": Column("reached", "text", "cells that reached the pass rate threshold"),
}
AGGREGATED = tuple(name for name, column in COLUMNS.items() if column.aggregated)


def show(name: str, value: object) -> str:
    """A value of a column as a reader sees it; empty if there is none."""
    if isinstance(value, float) and math.isnan(value):
        return ""
    if value == math.inf:
        return "not reached" if name == "updates_to_threshold" else "inf"
    form = COLUMNS[name].form
    if form == "text":
        return str(value)
    if form == "count":
        return f"{int(value):,}"
    return f"{value:.1%}" if form == "percent" else format(value, form)


def show_spread(name: str, mean: float, std: float) -> str:
    """`mean ± standard deviation`; the mean alone where there is one value."""
    spread = show(name, std)
    return f"{show(name, mean)} ± {spread}" if spread else show(name, mean)
