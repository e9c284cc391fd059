"""Normalised rewards against the formula; equal rewards are exactly 0."""

import numpy as np
import pytest
import torch

from async_rollout.algorithms import advantages


@pytest.mark.parametrize("seed", range(5))
def test_group_equals_the_formula(seed):
    rewards = np.random.default_rng(seed).random((5, 8))
    result = advantages.group(torch.from_numpy(rewards), 1e-4)
    for row, got in zip(rewards, result.values.numpy(), strict=True):
        expected = (row - sum(row) / 8) / (np.sqrt(sum((row - sum(row) / 8) ** 2) / 8) + 1e-4)
        np.testing.assert_allclose(got, expected, atol=1e-12)
    assert not result.zero_variance.any()


@pytest.mark.parametrize("reward", [0.0, 1.0, 0.1, 1 / 3, -7.7])
def test_equal_rewards_are_exactly_zero_and_counted(reward):
    """0.1 · 7 ÷ 7 is not 0.1 in floating point: the mean alone would leave noise."""
    rewards = torch.full((2, 7), reward, dtype=torch.float64)
    rewards[1, 3] += 1
    result = advantages.group(rewards)
    assert (result.values[0] == 0).all()
    assert (result.values[1] != 0).all()
    assert result.zero_variance.tolist() == [True, False]


def test_group_uses_the_prompts_own_samples_only():
    rewards = torch.tensor([[0.0, 1.0], [10.0, 11.0]], dtype=torch.float64)
    values = advantages.group(rewards).values
    assert torch.equal(values[0], values[1])


def test_group_of_one_is_refused():
    with pytest.raises(ValueError, match="G >= 2"):
        advantages.group(torch.ones(4, 1))


def test_batch_normalises_over_everything():
    rewards = torch.tensor([[0.0], [1.0], [1.0], [0.0]], dtype=torch.float64)
    result = advantages.batch(rewards, 1e-4)
    assert result.values.shape == rewards.shape
    np.testing.assert_allclose(result.values.flatten(), np.array([-1, 1, 1, -1]) * 0.5 / 0.5001)
    assert result.zero_variance.tolist() == [False]
    assert advantages.batch(torch.ones(4, 1)).zero_variance.tolist() == [True]


def test_running_mean_compares_with_what_came_before():
    rewards = torch.tensor([[0.0], [1.0], [0.5]], dtype=torch.float64)
    result = advantages.running_mean(rewards, torch.tensor([1.0, 0.0, 0.5, 0.5], dtype=torch.float64))
    assert result.values.tolist() == [[-0.5], [0.5], [0.0]]
    assert result.zero_variance.tolist() == [False]
    assert torch.equal(advantages.running_mean(rewards, rewards[:0, 0]).values, rewards)


def test_running_mean_has_no_signal_only_where_all_rewards_equal_the_baseline():
    ones = torch.ones(3, 1, dtype=torch.float64)
    assert advantages.running_mean(ones, ones[:, 0]).zero_variance.tolist() == [True]
    assert advantages.running_mean(ones, 0 * ones[:, 0]).zero_variance.tolist() == [False]
