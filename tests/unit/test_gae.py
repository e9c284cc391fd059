"""GAE over actions: a two-turn example worked by hand, and a sum that knows nothing of recursion."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.algorithms.gae import gae, length_lambda, whiten


def estimate(values, rewards, actions, lam, final=0.0):
    found = gae(
        torch.tensor(values, dtype=torch.float64),
        torch.tensor(rewards, dtype=torch.float64),
        torch.tensor(actions),
        lam,
        final,
    )
    return found.advantages.tolist(), found.returns.tolist()


def test_two_turns_by_hand():
    """Turn one: V .5, .6; observation with values 9, 9 that must not count; turn two: V .2, .8; reward 1.

    λ = ½. δ: .6 − .5 = .1;  .2 − .6 = −.4;  .8 − .2 = .6;  1 − .8 = .2
    A from the end: .2;  .6 + .1 = .7;  −.4 + .35 = −.05;  .1 − .025 = .075
    """
    values = [0.5, 0.6, 9.0, 9.0, 0.2, 0.8]
    actions = [True, True, False, False, True, True]
    advantages, returns = estimate(values, [0, 0, 0, 0, 0, 1], actions, 0.5)
    assert advantages == pytest.approx([0.075, -0.05, 0, 0, 0.7, 0.2])
    assert returns == pytest.approx([1, 1, 0, 0, 1, 1])


def test_the_reward_of_a_trailing_observation_goes_to_the_last_action():
    values, actions = [0.5, 0.6, 9.0], [True, True, False]
    trailing = estimate(values, [0, 0, 1], actions, 0.5)
    assert trailing == estimate(values, [0, 1, 0], actions, 0.5)
    assert trailing[0] == pytest.approx([0.1 + 0.2, 0.4, 0])
    between = estimate([0.0, 9.0, 0.0], [0, 2, 1], [True, False, True], 1.0)
    assert between[1] == [3, 0, 1]  # a reward between turns belongs to the turn before


def brute(values, rewards, actions, lam, final):
    """A_t = Σ_j λ^j δ_(t+j) over actions, each δ written out."""
    at = [i for i, action in enumerate(actions) if action]
    owned = [0.0] * len(at)
    for i, reward in enumerate(rewards):
        owned[max(0, sum(1 for a in at if a <= i) - 1)] += reward
    v = [values[i] for i in at] + [final]
    n = len(at)
    advantages, returns = [0.0] * len(values), [0.0] * len(values)
    for t in range(n):
        advantages[at[t]] = sum(lam**j * (owned[t + j] + v[t + j + 1] - v[t + j]) for j in range(n - t))
        returns[at[t]] = sum(owned[t:]) + final
    return advantages, returns


number = st.floats(-3, 3)


@given(
    st.lists(st.tuples(number, number, st.booleans()), min_size=1, max_size=12).filter(
        lambda tokens: any(action for _, _, action in tokens)
    ),
    st.floats(0, 1),
    number,
)
def test_equals_the_sum(tokens, lam, final):
    values, rewards, actions = (list(column) for column in zip(*tokens, strict=True))
    expected = brute(values, rewards, actions, lam, final)
    np.testing.assert_allclose(estimate(values, rewards, actions, lam, final), expected, atol=1e-9)


def test_lambda_by_length():
    assert [length_lambda(n) for n in (1, 2, 100)] == pytest.approx([1 / 3, 2 / 3, 149 / 150])
    assert length_lambda(1, alpha=0.5) == 0  # 1 − 2, clipped
    assert length_lambda(10**9) < 1
    assert length_lambda(10, alpha=1e9) <= 1


def test_whitened_values_have_mean_0_and_deviation_1_and_equal_ones_are_0():
    values = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    white = whiten(values, 0.0)
    assert white.tolist() == pytest.approx(((np.array([1, 2, 4]) - 7 / 3) / np.std([1, 2, 4])).tolist())
    assert whiten(torch.full((3,), 0.1), 1e-4).tolist() == [0, 0, 0]
