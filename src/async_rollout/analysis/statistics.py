"""Means, intervals and paired differences over seeds.

Intervals are Student's t, which is wide where seeds are few; fewer than `CLAIM_N` seeds
support no claim, whatever the interval.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

CLAIM_N = 3
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over `n` values. `std` is ddof 1, and empty (NaN) as `low`, `high` for n < 2."""

    mean: float
    std: float
    low: float
    high: float
    n: int

    def claims(self, null: float = 0.0) -> bool:
        """True if n suffices and the interval excludes `null`."""
        return self.n >= CLAIM_N and not self.low <= null <= self.high


def estimate(values: Sequence[float]) -> Estimate:
    """Mean, standard deviation and 95 % interval of finite values; all NaN if there are none."""
    data = np.asarray(values, dtype=np.float64)
    if not np.isfinite(data).all():
        raise ValueError(f"not finite: {data[~np.isfinite(data)][0]}")
    n = len(data)
    mean = float(data.mean()) if n else math.nan
    if n < 2:
        return Estimate(mean, math.nan, math.nan, math.nan, n)
    std = float(data.std(ddof=1))
    half = t_quantile(n - 1) * std / math.sqrt(n)
    return Estimate(mean, std, mean - half, mean + half, n)


def t_quantile(degrees: int) -> float:
    """The two-sided 95 % quantile of Student's t."""
    from scipy.special import stdtrit  # a quarter of a second to import

    return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2))


def paired_difference(a: Mapping[int, float], b: Mapping[int, float]) -> Estimate:
    """a − b over the seeds that both have."""
    return estimate([a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())])


def paired_ratio(a: Mapping[int, float], b: Mapping[int, float]) -> Estimate:
    """Geometric mean of a ÷ b over the seeds that both have, with its interval; values above 0.

    `std` is that of the logarithm. The null hypothesis of a ratio is 1.
    """
    log = estimate([math.log(a[seed] / b[seed]) for seed in sorted(a.keys() & b.keys())])
    return Estimate(math.exp(log.mean), log.std, math.exp(log.low), math.exp(log.high), log.n)


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
