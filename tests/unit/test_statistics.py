"""Statistics over seeds, against independent formulas."""

import math
import statistics

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.analysis.statistics import (
    CLAIM_N,
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


@given(st.lists(numbers, min_size=2, max_size=10))
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


def test_one_value_has_no_spread_and_none_has_no_mean() -> None:
    one, none = estimate([0.5]), estimate([])
    assert (one.mean, one.n) == (0.5, 1)
    assert all(math.isnan(x) for x in (one.std, one.low, one.high, none.mean, none.std))
    assert none.n == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        estimate([0.1, bad])


@given(st.lists(numbers, max_size=8), numbers)
def test_no_claim_without_seeds_or_with_the_null_inside(values: list[float], null: float) -> None:
    found = estimate(values)
    if len(values) < CLAIM_N:
        assert not found.claims(null)
    else:
        assert found.claims(null) == (null < found.low or null > found.high)


def test_two_identical_gains_are_no_claim_and_three_close_ones_are() -> None:
    assert not estimate([0.5, 0.5]).claims()
    assert estimate([0.50, 0.51, 0.52]).claims()
    assert not estimate([-0.1, 0.5, 0.1]).claims()


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
