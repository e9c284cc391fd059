"""Means, intervals, paired differences over seeds, and what may be claimed from them.

Two intervals stand side by side: Student's t, which is wide where seeds are few, and the
percentile bootstrap, which assumes no shape but never reaches beyond the values seen. A claim
needs `CLAIM_N` seeds and both intervals on one side of "no difference". The order of the
values changes nothing, and the same values always give the same interval.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Self

import numpy as np

CLAIM_N = 3
CONFIDENCE = 0.95
RESAMPLES = 1999
_SEED = 0
_ENDS = ("low", "high", "boot_low", "boot_high")

Verdict = Literal["higher", "lower", "no difference shown", "too few seeds"]


@dataclass(frozen=True)
class Estimate:
    """A mean over `n` values, with standard deviation (ddof 1) and 95 % intervals.

    `low`, `high`: Student's t; `boot_low`, `boot_high`: percentile bootstrap. NaN where there are
    too few values: the deviation for n < 2, the intervals for n < `CLAIM_N`.
    """

    mean: float
    std: float
    low: float
    high: float
    n: int
    boot_low: float = math.nan
    boot_high: float = math.nan

    def claims(self, null: float = 0.0) -> bool:
        """True if n suffices and both intervals exclude `null`."""
        if self.n < CLAIM_N:
            return False
        return not (self.low <= null <= self.high or self.boot_low <= null <= self.boot_high)

    def scaled(self, factor: float) -> Self:
        """A ratio in other units: all but n, and the deviation of logarithms, multiplied by `factor` > 0."""
        names = ("mean", *_ENDS)
        return replace(self, **{name: getattr(self, name) * factor for name in names})

    def within(self, least: float, most: float) -> Self:
        """The same with its intervals cut to where the quantity can lie: 0 to 1 for a rate."""
        return replace(self, **{name: float(np.clip(getattr(self, name), least, most)) for name in _ENDS})


@dataclass(frozen=True)
class Claim:
    """An estimate held against the value that means "no difference": 0, or 1 of a ratio."""

    estimate: Estimate
    null: float = 0.0

    @property
    def holds(self) -> bool:
        """True if a difference may be claimed."""
        return self.estimate.claims(self.null)

    @property
    def verdict(self) -> Verdict:
        """What may be said."""
        if self.estimate.n < CLAIM_N:
            return "too few seeds"
        if not self.holds:
            return "no difference shown"
        return "higher" if self.estimate.mean > self.null else "lower"


def estimate(values: Sequence[float]) -> Estimate:
    """Mean, standard deviation and 95 % intervals of finite values; all NaN if there are none."""
    data = np.sort(np.asarray(values, dtype=np.float64))
    if not np.isfinite(data).all():
        raise ValueError(f"not finite: {data[~np.isfinite(data)][0]}")
    n = len(data)
    mean = float(data.mean()) if n else math.nan
    std = float(data.std(ddof=1)) if n > 1 else math.nan
    if n < CLAIM_N:
        return Estimate(mean, std, math.nan, math.nan, n)
    half = t_quantile(n - 1) * std / math.sqrt(n)
    return Estimate(mean, std, mean - half, mean + half, n, *bootstrap_interval(tuple(data.tolist())))


def t_quantile(degrees: int) -> float:
    """The two-sided 95 % quantile of Student's t."""
    from scipy.special import stdtrit  # a quarter of a second to import

    return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2))


@lru_cache(maxsize=16384)
def bootstrap_interval(values: tuple[float, ...]) -> tuple[float, float]:
    """95 % percentile bootstrap interval of the mean of two sorted values or more, always the same draws."""
    if values[0] == values[-1]:
        return values[0], values[0]
    from scipy.stats import bootstrap  # half a second to import

    found = bootstrap(
        (np.asarray(values),),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    return float(found.low), float(found.high)


def paired_difference(a: Mapping[int, float], b: Mapping[int, float]) -> Estimate:
    """a − b over the seeds that both have."""
    return estimate([a[seed] - b[seed] for seed in a.keys() & b.keys()])


def paired_ratio(a: Mapping[int, float], b: Mapping[int, float]) -> Estimate:
    """Geometric mean of a ÷ b over the seeds that both have, with its intervals; values above 0.

    `std` is that of the logarithm. The null hypothesis of a ratio is 1.
    """
    log = estimate([math.log(a[seed] / b[seed]) for seed in a.keys() & b.keys()])
    ends = (math.exp(end) for end in (log.low, log.high))
    return Estimate(
        math.exp(log.mean), log.std, *ends, log.n, math.exp(log.boot_low), math.exp(log.boot_high)
    )


def histogram_mean(histogram: Mapping[str, int]) -> float:
    """Mean age of a {"age": tokens} histogram; NaN if it is empty."""
    total = sum(histogram.values())
    return sum(int(age) * count for age, count in histogram.items()) / total if total else math.nan


def histogram_shares(histograms: Sequence[Mapping[str, int]]) -> dict[int, float]:
    """Share of tokens by age, each non-empty histogram counting the same; ages without gap from 0."""
    filled = [h for h in histograms if sum(h.values())]
    if not filled:
        return {}
    oldest = max(int(age) for h in filled for age, count in h.items() if count)
    shares = dict.fromkeys(range(oldest + 1), 0.0)
    for histogram in filled:
        total = sum(histogram.values())
        for age, count in histogram.items():
            if count:
                shares[int(age)] += count / total / len(filled)
    return shares
