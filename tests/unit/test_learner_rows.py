"""What may enter a batch, and how truncated samples and observations are treated."""

from dataclasses import replace

import numpy as np
import pytest

from async_rollout.algorithms.ratio import NonFiniteError
from async_rollout.config.objective import AdvantageConfig
from async_rollout.learner.rows import StalenessError, make_batch
from async_rollout.types import Group, Verdict
from learning import groups


def changed(group: Group, sample: int, *, verdict: Verdict | None = None, **trajectory) -> Group:
    """The group with one sample's verdict or trajectory fields replaced."""
    samples = list(group.samples)
    old = samples[sample]
    samples[sample] = replace(
        old, trajectory=replace(old.trajectory, **trajectory), verdict=verdict or old.verdict
    )
    return replace(group, samples=tuple(samples))


def test_token_older_than_k_names_group_and_age():
    batch = groups(versions=(3, 3))
    make_batch(batch, AdvantageConfig(), version=7, bound=4)
    versions = batch[1].samples[2].trajectory.versions.copy()
    versions[0] = 2
    batch[1] = changed(batch[1], 2, versions=versions)
    with pytest.raises(StalenessError, match=r"group 1, sample 2: a token has staleness 5"):
        make_batch(batch, AdvantageConfig(), version=7, bound=4)
    make_batch(batch, AdvantageConfig(), version=7, bound=float("inf"))


def test_token_from_the_future_is_refused():
    with pytest.raises(StalenessError, match="staleness -1"):
        make_batch(groups(versions=(1, 1)), AdvantageConfig(), version=0, bound=4)


def test_observations_are_out_of_the_loss_and_have_no_age():
    batch = groups(versions=(5, 5), length=4)
    mask = np.array([True, False, False, True])
    versions = np.array([5, 0, 0, 6], dtype=np.int32)
    batch[0] = changed(batch[0], 0, action_mask=mask, versions=versions)
    result = make_batch(batch, AdvantageConfig(), version=6, bound=1)
    assert result.rows[0].mask.tolist() == mask.tolist()
    assert result.staleness() == {0: 1, 1: 7 * 4 + 1}


@pytest.mark.parametrize("how", ["train", "mask", "zero"])
def test_truncated_samples(how):
    batch = groups(rewards=((1, 1, 0, 0), (1, 0, 0, 0)))
    batch[0] = changed(batch[0], 0, finish_reason="length")
    result = make_batch(batch, AdvantageConfig(truncated=how), version=0, bound=0)
    advantages = [float(row.advantages[0]) for row in result.rows[:4]]
    rewards = np.array([1, 1, 0, 0]) if how != "zero" else np.array([0, 1, 0, 0])
    expected = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
    np.testing.assert_allclose(advantages, expected, rtol=1e-6)  # masked ones still enter the moments
    assert result.rows[0].mask.any() == (how != "mask")
    assert all(row.mask.all() for row in result.rows[1:])
    assert result.reward_mean == 3 / 8  # as judged


def test_equal_rewards_are_counted():
    result = make_batch(groups(rewards=((1, 1), (1, 0))), AdvantageConfig(), version=0, bound=0)
    assert result.zero_variance == 0.5
    assert [row.has_signal for row in result.rows] == [False, False, True, True]


def test_unjudged_samples_are_never_a_reward():
    batch = groups()
    batch[1] = changed(batch[1], 3, verdict=Verdict(0.0, "timeout", infrastructure=True))
    with pytest.raises(ValueError, match=r"group 1, sample 3: was never judged \(timeout\)"):
        make_batch(batch, AdvantageConfig(), version=0, bound=0)


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_reward_that_is_not_finite_is_named(reward):
    batch = groups()
    batch[0] = changed(batch[0], 1, verdict=Verdict(reward, "pass"))
    with pytest.raises(NonFiniteError, match="group 0, sample 1: the reward is"):
        make_batch(batch, AdvantageConfig(), version=0, bound=0)


def test_groups_of_different_size_are_refused():
    with pytest.raises(ValueError, match="group 1 has 2 samples, others 4"):
        make_batch(groups(rewards=((0, 1, 0, 1), (0, 1))), AdvantageConfig(), version=0, bound=0)
