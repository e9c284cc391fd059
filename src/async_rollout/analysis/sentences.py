"""The report's first sentences, each computed from `summary_headline`.

A difference is claimed only if `CLAIM_N` pairs of seeds support it and its 95 % interval
excludes "no difference"; otherwise the sentence gives the numbers and says that none is.
"""

import pandas as pd

from async_rollout.analysis.statistics import CLAIM_N, Estimate, estimate, paired_difference, paired_ratio

MODE = "areal"
VARIANT = ["algorithm", "arm", "decoupled"]


def sentences(headline: pd.DataFrame, k: int) -> list[str]:
    """What one dataset's cells say about `areal` at staleness bound `k` against `sync`."""
    done = headline[headline["status"].isin(["done", "collapsed"])]
    if done.empty:
        return ["No cell has finished, so there is nothing to say yet."]
    apart = done[(done["mode"] == MODE) & (done["k"] == k)]
    said = _learning(done)
    if apart.empty:
        said.append(f"No finished {MODE} cell has K = {k} (`report.k_headline`), so no headline compares it.")
    for (algorithm, arm, _), group in apart.groupby(VARIANT, sort=False):
        base = done[(done["mode"] == "sync") & (done["algorithm"] == algorithm) & (done["arm"] == arm)]
        said += _comparison(group, base, k)
    return said + _staleness(apart, k)


def _learning(done: pd.DataFrame) -> list[str]:
    gain = (done["eval_sampled_last"] - done["eval_sampled_first"]).dropna()
    if gain.empty:
        return []
    return [
        f"{(gain > 0).sum()} of {len(gain)} evaluated cells ended with a higher held-out pass rate than they "
        f"began with; the changes lie between {gain.min():+.3f} and {gain.max():+.3f}."
    ]


def _comparison(group: pd.DataFrame, base: pd.DataFrame, k: int) -> list[str]:
    """Speed and held-out pass rate of one variant against sync of the same algorithm and arm."""
    ours, theirs = group.iloc[0]["objective"], None if base.empty else base.iloc[0]["objective"]
    head = f"{group.iloc[0]['algorithm']}, arm {group.iloc[0]['arm']}, {ours} objective"
    if base.empty:
        return [f"{head}: no finished sync cell of this algorithm and arm to compare {MODE} with."]
    differ = (
        "" if ours == theirs else f" (sync has the {theirs} objective: the schedule is not all that differs)"
    )
    return [
        f"Speed, {head}: {_speed(_speeds(group), _speeds(base), k)}{differ}.",
        f"Learning, {head}: {_pass_rate(_ends(group), _ends(base), k)}{differ}.",
    ]


def _speeds(group: pd.DataFrame) -> dict[int, float]:
    """Trained tokens a second by seed, of cells that needed one attempt."""
    column = "trained_tokens_per_sec"
    return _by_seed(group[(group["attempts"] == 1) & (group[column] > 0)], column)


def _ends(group: pd.DataFrame) -> dict[int, float]:
    """Held-out pass rate of the last version by seed."""
    return _by_seed(group, "eval_sampled_last")


def _by_seed(group: pd.DataFrame, column: str) -> dict[int, float]:
    known = group.dropna(subset=[column])
    return dict(zip(known["seed"].astype(int), known[column].astype(float), strict=True))


def _speed(ours: dict, theirs: dict, k: int) -> str:
    ratio = paired_ratio(ours, theirs)
    if not ratio.n:
        return f"no seed has finished both {MODE} with K = {k} and sync at the first attempt"
    return (
        f"{MODE} with K = {k} trained {ratio.mean:.2f} times as many tokens a second as sync, each on the "
        f"resources of its own configuration, {_verdict(ratio, 1.0, '.2f')}"
    )


def _pass_rate(ours: dict, theirs: dict, k: int) -> str:
    difference = paired_difference(ours, theirs)
    if not difference.n:
        return f"no seed was evaluated under both {MODE} with K = {k} and sync"
    seeds = sorted(ours.keys() & theirs.keys())
    ends = [estimate([values[seed] for seed in seeds]).mean for values in (ours, theirs)]
    return (
        f"{MODE} with K = {k} ended at a held-out pass rate of {ends[0]:.3f}, sync at {ends[1]:.3f}: a "
        f"difference of {difference.mean:+.3f}, {_verdict(difference, 0.0, '+.3f')}"
    )


def _verdict(found: Estimate, null: float, form: str) -> str:
    """Interval and n, and whether a difference may be claimed."""
    if found.n < CLAIM_N:
        pairs = "1 pair of seeds" if found.n == 1 else f"{found.n} pairs of seeds"
        return f"in {pairs}; fewer than {CLAIM_N} pairs support no claim"
    interval = f"95\u00a0% interval {found.low:{form}} to {found.high:{form}}, n = {found.n} pairs of seeds"
    if found.claims(null):
        return interval
    return f"{interval}; it includes {null:g}, so no difference is claimed"


def _staleness(apart: pd.DataFrame, k: int) -> list[str]:
    if apart.empty:
        return []
    oldest = int(apart["staleness_max"].max())
    steps = int((apart["staleness_max"] * apart["minibatches"]).max())
    mean, share = apart["staleness_mean"].mean(), apart["dropped_token_share"].max()
    dropped = (
        f"at most {share:.1%} of a cell's generated tokens were dropped" if share > 0 else "none was dropped"
    )
    return [
        f"Staleness: in {MODE} with K = {k} trained tokens were {mean:.2f} policy versions old on "
        f"average over {len(apart)} cells, {oldest} at most ({steps} optimizer steps); {dropped}."
    ]
