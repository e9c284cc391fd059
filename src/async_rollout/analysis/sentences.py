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
        f"began with; the change lies between {gain.min():+.3f} and {gain.max():+.3f}."
    ]


def _comparison(group: pd.DataFrame, base: pd.DataFrame, k: int) -> list[str]:
    first = group.iloc[0]
    subject = (
        f"{MODE} with K = {k} ({first['algorithm']}, arm {first['arm']}, {first['objective']} objective)"
    )
    if base.empty:
        return [f"{subject} has no finished sync cell of its algorithm and arm to be compared with."]
    other = f"sync ({base.iloc[0]['objective']} objective)"
    return [
        _speed(subject, other, _by_seed(group, "trained_tokens_per_sec"), _by_seed(base, "trained_tokens_per_sec")),
        _pass_rate(subject, other, _by_seed(group, "eval_sampled_last"), _by_seed(base, "eval_sampled_last")),
    ]  # fmt: skip


def _by_seed(group: pd.DataFrame, column: str) -> dict[int, float]:
    """Values by seed; speeds of cells with one attempt only, and above 0."""
    if column == "trained_tokens_per_sec":
        group = group[(group["attempts"] == 1) & (group[column] > 0)]
    known = group.dropna(subset=[column])
    return dict(zip(known["seed"].astype(int), known[column].astype(float), strict=True))


def _speed(subject: str, other: str, ours: dict, theirs: dict) -> str:
    ratio = paired_ratio(ours, theirs)
    if not ratio.n:
        return f"Speed of {subject} and {other}: no seed has a run of both that needed one attempt only."
    return (
        f"{subject} trained {ratio.mean:.2f} times as many tokens a second as {other}, each on the resources of "
        f"its own configuration{_verdict(ratio, 1.0, '.2f')}."
    )


def _pass_rate(subject: str, other: str, ours: dict, theirs: dict) -> str:
    difference = paired_difference(ours, theirs)
    if not difference.n:
        return f"Held-out pass rate of {subject} and {other}: no seed was evaluated in both."
    seeds = sorted(ours.keys() & theirs.keys())
    ends = [estimate([values[seed] for seed in seeds]).mean for values in (ours, theirs)]
    return (
        f"{subject} ended at a held-out pass rate of {ends[0]:.3f}, {other} at {ends[1]:.3f}: a difference of "
        f"{difference.mean:+.3f}{_verdict(difference, 0.0, '+.3f')}."
    )


def _verdict(found: Estimate, null: float, form: str) -> str:
    """Interval and n, and whether a difference may be claimed."""
    if found.n < CLAIM_N:
        pairs = "1 pair of seeds" if found.n == 1 else f"{found.n} pairs of seeds"
        return f" in {pairs}; no difference can be claimed from fewer than {CLAIM_N}"
    interval = f" (95 % interval {found.low:{form}} to {found.high:{form}}, n = {found.n} pairs of seeds)"
    if found.claims(null):
        return interval
    return f"{interval}; the interval includes {null:g}, so no difference is claimed"


def _staleness(apart: pd.DataFrame, k: int) -> list[str]:
    if apart.empty:
        return []
    oldest, steps = (
        int(apart["staleness_max"].max()),
        int((apart["staleness_max"] * apart["minibatches"]).max()),
    )
    dropped = apart["dropped_token_share"].max()
    return [
        f"At K = {k} in mode {MODE}, trained tokens were {apart['staleness_mean'].mean():.2f} policy versions old on "
        f"average over {len(apart)} cells, and {oldest} at most ({steps} optimizer steps); "
        f"at most {dropped:.1%} of a cell's generated tokens were dropped."
    ]
