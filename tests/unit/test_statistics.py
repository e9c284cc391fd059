"""Statistics over seeds, against independent formulas."""

import itertools
import math
import random
import statistics
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.analysis.statistics import (
    CLAIM_N,
    Claim,
    Estimate,
    estimate,
    histogram_mean,
    histogram_shares,
    paired_difference,
    paired_ratio,
)

numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 6))
positive = st.floats(0.01, 1e6)
seeds = st.integers(0, 6)
histograms = st.dictionaries(st.integers(0, 20).map(str), st.integers(0, 50))


@given(st.lists(numbers, min_size=CLAIM_N, max_size=10))
def test_estimate_is_the_t_interval(values: list[float]) -> None:
    found = estimate(values)
    assert found.n == len(values)
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-6)
    assert found.std == pytest.approx(statistics.stdev(values), rel=1e-9, abs=1e-6)
    if found.std > 1e-6:
        low, high = scipy.stats.t.interval(
            0.95, len(values) - 1, loc=np.mean(values), scale=scipy.stats.sem(values)
        )
        assert (found.low, found.high) == pytest.approx((low, high), rel=1e-6, abs=1e-6)


@given(st.lists(numbers, min_size=1, max_size=10), st.randoms())
def test_the_order_of_the_values_changes_nothing(values: list[float], chance: random.Random) -> None:
    shuffled = chance.sample(values, len(values))
    assert repr(estimate(shuffled)) == repr(estimate(values))  # repr: NaN is not NaN


@given(st.lists(numbers, min_size=CLAIM_N, max_size=10))
def test_the_bootstrap_stays_among_the_values_and_about_the_mean(values: list[float]) -> None:
    found = estimate(values)
    slack = 1e-9 * max(1.0, *map(abs, values))
    assert min(values) - slack <= found.boot_low <= found.boot_high <= max(values) + slack
    assert found.boot_low - slack <= found.mean <= found.boot_high + slack


def test_the_bootstrap_is_that_of_all_resamples() -> None:
    """Of four values there are 256 resamples: their quantiles are known without chance."""
    values = [0.1, 0.4, 0.5, 0.9]
    means = np.sort([np.mean(drawn) for drawn in itertools.product(values, repeat=4)])
    found = estimate(values)
    assert found.boot_low == pytest.approx(np.quantile(means, 0.025), abs=0.03)
    assert found.boot_high == pytest.approx(np.quantile(means, 0.975), abs=0.03)


def test_intervals_cover_the_true_mean_as_often_as_they_say_and_claims_err_seldom() -> None:
    """400 sets of five normal values about 0: Student's t covers 95 %, the bootstrap less, never a claim more
    often than 5 %."""
    draws = np.random.default_rng(1).normal(size=(400, 5))
    found = [estimate(list(values)) for values in draws]
    covered = np.mean([e.low <= 0 <= e.high for e in found])
    bootstrap = np.mean([e.boot_low <= 0 <= e.boot_high for e in found])
    assert 0.92 <= covered <= 0.98
    assert 0.70 <= bootstrap < covered
    assert np.mean([e.claims() for e in found]) <= 0.08


def test_few_values_have_no_interval_one_has_no_spread_and_none_has_no_mean() -> None:
    two, one, none = estimate([0.5, 0.7]), estimate([0.5]), estimate([])
    assert (two.mean, two.std, two.n) == (pytest.approx(0.6), pytest.approx(0.1 * math.sqrt(2)), 2)
    assert (one.mean, one.n) == (0.5, 1)
    empty = [getattr(two, end) for end in ("low", "high", "boot_low", "boot_high")]
    assert all(math.isnan(x) for x in (*empty, one.std, one.low, one.high, none.mean, none.std))
    assert none.n == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        estimate([0.1, bad])


@given(st.lists(numbers, max_size=8), numbers)
def test_no_claim_without_seeds_or_with_the_null_inside_either_interval(
    values: list[float], null: float
) -> None:
    found = estimate(values)
    outside = [null < low or null > high for low, high in intervals(found)]
    assert found.claims(null) == (len(values) >= CLAIM_N and all(outside))


def intervals(found: Estimate) -> list[tuple[float, float]]:
    return [(found.low, found.high), (found.boot_low, found.boot_high)]


def test_both_intervals_must_exclude_the_null() -> None:
    base = Estimate(mean=1.0, std=1.0, low=0.1, high=2.0, n=9, boot_low=0.1, boot_high=2.0)
    assert base.claims()
    assert not replace(base, low=-0.1).claims()
    assert not replace(base, boot_low=-0.1).claims()


def test_two_identical_gains_are_no_claim_and_three_close_ones_are() -> None:
    assert not estimate([0.5, 0.5]).claims()
    assert estimate([0.50, 0.51, 0.52]).claims()
    assert not estimate([-0.1, 0.5, 0.1]).claims()


@given(st.lists(numbers, max_size=8), numbers)
def test_a_verdict_says_what_may_be_said(values: list[float], null: float) -> None:
    claim = Claim(estimate(values), null)
    if len(values) < CLAIM_N:
        assert (claim.holds, claim.verdict) == (False, "too few seeds")
    elif not claim.holds:
        assert claim.verdict == "no difference shown"
    else:
        assert claim.verdict == ("higher" if np.mean(values) > null else "lower")


@given(st.dictionaries(seeds, numbers), numbers)
def test_a_paired_difference_of_shifted_seeds_is_the_difference_of_means(a: dict, shift: float) -> None:
    found = paired_difference({seed: x + shift for seed, x in a.items()}, a)
    assert found.n == len(a)
    if a:
        assert found.mean == pytest.approx(shift, abs=1e-6)
    if len(a) >= CLAIM_N:
        assert found.low == pytest.approx(found.high, abs=1e-5)  # the seeds differ, their pairs do not


@given(st.lists(st.floats(0, 1), min_size=CLAIM_N, max_size=8))
def test_the_interval_of_a_rate_is_cut_to_where_rates_lie(values: list[float]) -> None:
    whole = estimate(values)
    cut = whole.within(0.0, 1.0)
    assert (cut.mean, cut.std, cut.n) == (whole.mean, whole.std, whole.n)
    assert (cut.low, cut.high) == (max(whole.low, 0.0), min(whole.high, 1.0))


@given(st.dictionaries(seeds, numbers), st.dictionaries(seeds, numbers))
def test_a_paired_difference_uses_common_seeds_and_changes_sign(a: dict, b: dict) -> None:
    forth, back = paired_difference(a, b), paired_difference(b, a)
    assert forth.n == back.n == len(a.keys() & b.keys())
    if forth.n:
        assert forth.mean == pytest.approx(-back.mean, abs=1e-6)


@given(st.dictionaries(seeds, positive, min_size=1), st.floats(0.1, 10))
def test_a_paired_ratio_finds_the_factor(a: dict, factor: float) -> None:
    scaled = {seed: value * factor for seed, value in a.items()}
    assert paired_ratio(scaled, a).mean == pytest.approx(factor, rel=1e-9)
    assert paired_ratio(a, scaled).mean == pytest.approx(1 / factor, rel=1e-9)


@given(histograms)
def test_the_mean_of_a_histogram_is_that_of_its_tokens(histogram: dict) -> None:
    tokens = [int(age) for age, count in histogram.items() for _ in range(count)]
    found = histogram_mean(histogram)
    assert math.isnan(found) if not tokens else found == pytest.approx(np.mean(tokens))


@given(st.lists(histograms, max_size=4))
def test_shares_weigh_cells_alike(many: list[dict]) -> None:
    shares = histogram_shares(many)
    filled = [h for h in many if sum(h.values())]
    assert list(shares) == list(range(len(shares)))
    assert sum(shares.values()) == pytest.approx(1 if filled else 0)
    for age, share in shares.items():
        each = [h.get(str(age), 0) / sum(h.values()) for h in filled]
        assert share == pytest.approx(np.mean(each))
