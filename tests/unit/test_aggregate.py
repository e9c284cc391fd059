"""Numerators of any split, divided by one denominator, give the loss of the whole."""

import pytest
import torch

from async_rollout.algorithms.aggregate import denominator, numerator

VALUES = torch.tensor([[1.0, 2.0, 3.0], [10.0, 50.0, 70.0], [5.0, 6.0, 7.0]], dtype=torch.float64)
MASK = torch.tensor([[True, True, True], [True, False, False], [False, False, False]])
EXPECTED = {"token_mean": 16 / 4, "seq_mean": (2 + 10) / 2, "constant": 16 / (2 * 8)}


@pytest.mark.parametrize("how", EXPECTED)
def test_value_and_independence_of_the_split(how):
    count = denominator(MASK.sum(dim=1).tolist(), how, longest=8)
    for split in ([[0, 1, 2]], [[0], [1], [2]], [[2, 0], [1]]):
        total = sum(numerator(VALUES[rows], MASK[rows], how) for rows in split)
        assert float(total / count) == pytest.approx(EXPECTED[how], abs=1e-12)


@pytest.mark.parametrize("how", EXPECTED)
def test_no_token_in_the_loss_divides_by_nothing(how):
    assert denominator([0, 0], how, longest=8) == 0
    assert float(numerator(VALUES, torch.zeros_like(MASK), how)) == 0


def test_unknown_aggregation_is_refused():
    with pytest.raises(ValueError, match="median"):
        denominator([1], "median", longest=8)
