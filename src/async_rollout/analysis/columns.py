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
    "measure": Column("measure", "text", "what was measured"),
    "mean": Column("mean", ".5g", "mean over seeds"),
    "std": Column("std", ".3g", "standard deviation over seeds (ddof 1)"),
    "low": Column("t low", ".5g", "95 % interval, Student's t"),
    "high": Column("t high", ".5g", "95 % interval, Student's t"),
    "boot_low": Column("bootstrap low", ".5g", "95 % interval, percentile bootstrap"),
    "boot_high": Column("bootstrap high", ".5g", "95 % interval, percentile bootstrap"),
    "final": Column("eval pass, last", ".3f", "held-out pass rate, sampled, of the last version"),
    "best": Column(
        "eval pass, best", ".3f", "highest held-out pass rate of a run's versions: biased upwards"
    ),
    "mean_eval": Column("eval pass, mean", ".3f", "mean held-out pass rate of a run's versions"),
    "versus_k0": Column("against K = 0", "+.3f", "last pass rate minus that of K = 0, paired by seed"),
    "pairs": Column("pairs", "count", "seeds that both sides have"),
    "claim": Column("claim", "text", "what the pairs of seeds support"),
    "window_first": Column("from", "count", "first update of the window"),
    "window_last": Column("to", "count", "last update of the window"),
    "rate": Column("train pass", ".3f", "training samples solved ÷ judged"),
    "baseline": Column("baseline", "text", "what it is compared with"),
    "baseline_objective": Column("its objective", "text", "loss of the baseline"),
    "compute": Column("computes with", "text", "cores that compute at once, or GPUs"),
    "baseline_compute": Column("baseline computes with", "text", "cores that compute at once, or GPUs"),
    "speed": Column("trained tok/s", ".1f", "trained tokens a second of wall clock"),
    "baseline_speed": Column("baseline tok/s", ".1f", "trained tokens a second of wall clock"),
    "ratio": Column("ratio", ".3f", "speed ÷ the baseline's, each on its own resources"),
    "ratio_per_unit": Column("ratio per core or GPU", ".3f", "the ratio, divided by that of the resources"),
    "claim_per_unit": Column("claim per core or GPU", "text", "what the pairs of seeds support"),
    "bound": Column("bound", ".3f", "what overlap alone can give: (G + T) ÷ max(G, T) of the baseline"),
    "ratio_of_bound": Column("ratio ÷ bound", "percent", "how much of the bound was reached"),
    "overlap": Column("overlap", ".2f", "busy shares of rollout and trainer together, at most 2"),
    "ratio_k0": Column("ratio to K = 0", ".3f", "speed ÷ that of K = 0 of the same variant, paired by seed"),
    "published": Column("AReaL, Fig. 5c", ".2f", "the ratio that AReaL published"),
    "level": Column("level", "text", "error, warning or note"),
    "finding": Column("finding", "text", "what looks wrong or thin"),
    "kind": Column("kind", "text", "what happened"),
    "last_state": Column("last state", "text", "what the cell did last"),
    "reason": Column("reason", "text", "why it failed"),
    "detail": Column("detail", "text", "what is known"),
    "lost_sec": Column("lost s", ".1f", "seconds of work undone by crashes"),
}
RATES = {"pass_rate_first", "pass_rate_last", "eval_sampled_first", "eval_sampled_last", "eval_greedy_last"}
RATES |= {"dropped_token_share", "final", "best", "mean_eval", "rate"}  # all lie in [0, 1]
AGGREGATED = tuple(name for name, column in COLUMNS.items() if column.aggregated)


def show(name: str, value: object) -> str:
    """A value of a column as a reader sees it; empty if there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
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
    spread = show(name, std).removeprefix("+")
    return f"{show(name, mean)} ± {spread}" if spread else show(name, mean)


def show_interval(name: str, mean: float, std: float, low: float, high: float) -> str:
    """`mean [low, high]`; where seeds are too few for an interval, mean and deviation."""
    if math.isnan(low):
        return show_spread(name, mean, std)
    return f"{show(name, mean)} [{show(name, low)}, {show(name, high)}]"
