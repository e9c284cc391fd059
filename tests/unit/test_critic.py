"""The critic and what it credits: a policy that can be checked by hand, and a real backbone."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from async_rollout.algorithms.gae import gae, length_lambda
from async_rollout.algorithms.value_loss import clipped_value_loss
from async_rollout.config.objective import AdvantageConfig
from async_rollout.learner.batching import collate, split
from async_rollout.learner.credit import Values, credit
from async_rollout.learner.learner import Learner
from async_rollout.learner.rows import make_batch
from async_rollout.types import Group
from learning import VOCABULARY, BigramPolicy, groups, run_config
from tiny_policy import tiny_policy


class TableValue:
    """ValueModel: the value of a state is a number of its newest token."""

    def __init__(self) -> None:
        g = torch.Generator().manual_seed(3)
        self.table = torch.nn.Parameter(torch.randn(VOCABULARY, generator=g, dtype=torch.float64))

    def parameters(self):
        return {"values": self.table}

    def values(self, batch):
        states = np.concatenate([batch.prompt_ids[:, -1:], batch.response_ids], axis=1)
        return self.table[torch.from_numpy(states)]

    def state_dict(self):
        return {"values": self.table.detach().clone()}

    def load_state_dict(self, state):
        self.table.data.copy_(state["values"])


class Policy(BigramPolicy):
    def value_model(self, *, freeze_attention):
        return TableValue()


def sao(**blocks):
    critic = {"warmup_updates": 0} | blocks.pop("critic", {})
    defaults = {
        "algorithm": "sao",
        "advantage": {"name": "gae"},
        "objective": {"name": "dis"},
        "batch": {"groups": 8, "group_size": 1, "minibatches": 2},
        "optim": {"lr": 0.01},
    }
    return run_config(**defaults | blocks, critic=critic)


def batch_of(seed: int = 0, observed: bool = True, **how) -> list[Group]:
    """Eight groups of one sample; where `observed`, some tokens are an environment's, once the last ones."""
    made = groups(seed=seed, rewards=tuple((r,) for r in (0, 1, 1, 0, 1, 0, 0, 1)), **how)
    if not observed:
        return made
    done = []
    for group in made:
        (sample,) = group.samples
        mask = np.random.default_rng(group.number).random(len(sample.trajectory.response_ids)) < 0.7
        mask[0], mask[-1] = True, group.number != 3 or len(mask) == 1
        trajectory = replace(sample.trajectory, action_mask=mask)
        done.append(replace(group, samples=(replace(sample, trajectory=trajectory),)))
    return done


def trajectories(batch):
    return [g.samples[0].trajectory for g in batch]


def values_by_hand(table, trajectory) -> list[float]:
    """V at the position that predicts each token, then at the end."""
    states = [int(trajectory.prompt_ids[-1]), *trajectory.response_ids.tolist()]
    return table.detach()[torch.tensor(states, dtype=torch.long)].tolist()


def test_credit_is_gae_of_the_old_values_whitened_over_action_tokens():
    batch, table = batch_of(length=6), TableValue().table.detach()
    config = AdvantageConfig(name="gae")
    rows = make_batch(batch, config, 0, 0)
    values = [
        Values(np.float32(v[:-1]), v[-1]) for v in (values_by_hand(table, t) for t in trajectories(batch))
    ]
    done = credit(rows, values, config)
    raw = []
    for group in batch:
        (sample,) = group.samples
        t, v = sample.trajectory, values_by_hand(table, sample.trajectory)
        at = np.flatnonzero(t.action_mask)
        lam, kept = 1 - 1 / (1.5 * len(at)), [v[i] for i in at] + [0.0]
        delta = [kept[j + 1] - kept[j] for j in range(len(at))]
        delta[-1] += sample.verdict.reward
        raw.append([sum(lam ** (m - j) * delta[m] for m in range(j, len(at))) for j in range(len(at))])
    flat = np.concatenate(raw)
    expected = (flat - flat.mean()) / (flat.std() + config.epsilon)
    found = np.concatenate([row.advantages[row.mask] for row in done.rows])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    for row, group in zip(done.rows, batch, strict=True):
        assert (row.advantages[~row.mask] == 0).all()
        np.testing.assert_allclose(row.returns[row.mask], group.samples[0].verdict.reward, atol=1e-6)
    plain = credit(rows, values, config.model_copy(update={"whiten": "none"}))
    np.testing.assert_allclose(np.concatenate([r.advantages[r.mask] for r in plain.rows]), flat, atol=1e-6)


def test_a_trailing_observation_leaves_the_reward_on_the_last_action():
    batch = [g for g in batch_of(length=5) if not g.samples[0].trajectory.action_mask[-1]]
    assert len(batch) == 1
    (row,) = credit(
        make_batch(batch, AdvantageConfig(name="gae"), 0, 0),
        [Values(np.zeros(5, np.float32), 9.0)],
        AdvantageConfig(name="gae", whiten="none"),
    ).rows
    last = np.flatnonzero(row.mask)[-1]
    reward = batch[0].samples[0].verdict.reward
    assert row.advantages[last] == row.returns[last] == reward


@pytest.mark.parametrize(("bootstrap", "end"), [(False, 0.0), (True, 0.75)])
def test_truncated_samples_end_with_a_value_only_if_asked(bootstrap, end):
    batch = batch_of(observed=False, length=3, finish_reason="length")[:1]
    config = AdvantageConfig(name="gae", whiten="none", bootstrap=bootstrap)
    (row,) = credit(make_batch(batch, config, 0, 0), [Values(np.zeros(3, np.float32), 0.75)], config).rows
    assert row.returns.tolist() == [end] * 3
    finished = batch_of(observed=False, length=3)[:1]
    (row,) = credit(make_batch(finished, config, 0, 0), [Values(np.zeros(3, np.float32), 0.75)], config).rows
    assert row.returns.tolist() == [0.0] * 3


def test_value_loss_and_its_gradient_by_hand():
    """In reach, out of reach towards the return, out of reach away from it, and a masked token."""
    values = torch.tensor([[0.3, 0.9, -0.9, 5.0]], dtype=torch.float64, requires_grad=True)
    before, returns = torch.zeros(1, 4, dtype=torch.float64), torch.tensor([[1.0, 1.0, 1.0, 1.0]])
    mask = torch.tensor([[True, True, True, False]])
    result = clipped_value_loss(values, before, returns, mask, 0.5)
    assert result.loss[0].tolist() == pytest.approx([0.5 * 0.49, 0.5 * 0.25, 0.5 * 3.61, 0])
    assert result.clipped[0].tolist() == [False, True, False, False]
    (gradient,) = torch.autograd.grad(result.loss.sum(), values)
    assert gradient[0].tolist() == pytest.approx([-0.7, 0, -1.9, 0])


def step_by_hand(learner: Learner, batch, config, version: int) -> torch.Tensor:
    """The critic's table after its passes: targets fixed from the table as it is now."""
    table = learner._critic._model.table.detach().clone().requires_grad_(True)
    optimizer = copy.deepcopy(learner._critic._optimizer._adamw.state_dict())
    adam = torch.optim.AdamW(
        [table], lr=5 * config.optim.lr, betas=config.optim.betas, weight_decay=0, fused=False
    )
    assert optimizer["state"] == {}
    old = [torch.tensor(values_by_hand(table, t)[:-1]) for t in trajectories(batch)]
    for number in range(config.critic.passes):
        for chosen in split(len(batch), config.batch.minibatches, config.seed, version, 1 + number):
            total, count = 0.0, 0
            for i in chosen:
                t, reward = trajectories(batch)[i], batch[i].samples[0].verdict.reward
                states = torch.tensor([int(t.prompt_ids[-1]), *t.response_ids[:-1].tolist()])
                actions = torch.from_numpy(t.action_mask)
                v, v_old = table[states][actions], old[i][actions]
                near = v_old + (v - v_old).clamp(-config.critic.clip, config.critic.clip)
                total = total + (torch.maximum((v - reward) ** 2, (near - reward) ** 2) / 2).sum()
                count += int(actions.sum())
            adam.zero_grad()
            (total / count).backward()
            torch.nn.utils.clip_grad_norm_([table], config.optim.grad_clip)
            adam.step()
    return table.detach()


def test_critic_passes_equal_those_by_hand_with_targets_fixed_before():
    config = sao(optim={"lr": 0.05})
    learner, batch = Learner(config, Policy(), "cpu"), batch_of()
    before = learner._critic._model.table.detach().clone()
    expected = step_by_hand(learner, batch, config, 0)
    metrics = learner.step(batch, 0)
    after = learner._critic._model.table.detach()
    torch.testing.assert_close(after, expected, atol=1e-6, rtol=0)
    assert (after - before).abs().max() > 0.5  # far enough for the value clip to have bound
    assert metrics.critic.clip_fraction > 0
    assert metrics.critic.optimizer_steps == 4


def test_the_policys_advantages_come_from_the_values_before_the_critics_passes():
    """The same step with a critic that learns a hundred times faster leaves the policy where it was."""
    tables = []
    for factor in (0.01, 100.0):
        policy = Policy()
        Learner(sao(critic={"lr_factor": factor}), policy, "cpu").step(batch_of(), 0)
        tables.append(policy.table.detach())
    assert torch.equal(*tables)
    assert not torch.equal(tables[0], Policy().table.detach())


def test_warm_up_trains_the_critic_alone_and_is_counted():
    policy = Policy()
    learner = Learner(sao(critic={"warmup_updates": 2}), policy, "cpu")
    start = policy.table.detach().clone()
    for version in range(3):
        critic = learner._critic._model.table.detach().clone()
        metrics = learner.step(batch_of(seed=version, versions=(version, version)), version)
        assert not torch.equal(critic, learner._critic._model.table.detach())
        assert metrics.critic_only == (version < 2)
        assert not metrics.empty
        assert metrics.optimizer_steps == (0 if version < 2 else 2)
        assert torch.equal(policy.table.detach(), start) == (version < 2)
        assert metrics.trained_tokens == sum(
            int(t.action_mask.sum()) for t in trajectories(batch_of(version))
        )


def test_state_goes_on_bit_for_bit():
    policy = Policy()
    learner = Learner(sao(), policy, "cpu")
    learner.step(batch_of(), 0)
    twin = copy.deepcopy(policy)
    successor = Learner(sao(), twin, "cpu")
    successor.load_state_dict(copy.deepcopy(learner.state_dict()))
    later = {"seed": 1, "versions": (1, 1)}
    assert learner.step(batch_of(**later), 1) == successor.step(batch_of(**later), 1)
    assert torch.equal(policy.table, twin.table)
    assert torch.equal(learner._critic._model.table, successor._critic._model.table)


def test_masked_samples_teach_the_critic_nothing():
    config = sao(advantage={"name": "gae", "truncated": "mask"})
    learner = Learner(config, Policy(), "cpu")
    before = learner._critic._model.table.detach().clone()
    metrics = learner.step(batch_of(finish_reason="length"), 0)
    assert metrics.critic is None
    assert metrics.empty
    assert torch.equal(before, learner._critic._model.table.detach())


def test_without_gae_there_is_no_critic():
    learner = Learner(run_config(), Policy(), "cpu")
    assert learner._critic is None
    assert learner.step(groups(), 0).critic is None


@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
def test_a_backbones_values_do_not_depend_on_padding_and_start_at_0(kind):
    policy = tiny_policy(kind)
    model = policy.value_model(freeze_attention=False)
    batch = groups(rewards=((0,), (1,), (1,)), vocabulary=40)
    rows = make_batch(batch, AdvantageConfig(name="gae"), 0, 0).rows
    together = collate(rows, policy.codec.pad_id).scoring
    with torch.no_grad():
        assert (model.values(together) == 0).all()
        torch.nn.init.normal_(model.head.weight, generator=torch.Generator().manual_seed(0))
        padded = model.values(together)
        for i, row in enumerate(rows):
            alone = model.values(collate([row], policy.codec.pad_id).scoring)[0]
            length = len(row.mask)
            assert len(alone) == length + 1
            torch.testing.assert_close(padded[i, : length + 1], alone, atol=1e-4, rtol=0)
            t = row.trajectory  # V_t has read the prompt and the tokens before t, and no more
            ids = torch.tensor([*t.prompt_ids, *t.response_ids])[None].long()
            states = model.backbone(input_ids=ids).last_hidden_state[0, len(t.prompt_ids) - 1 :]
            torch.testing.assert_close(alone, model.head(states)[:, 0], atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
def test_a_value_model_shares_nothing_and_may_leave_attention_as_it_is(kind):
    policy = tiny_policy(kind)
    places = {p.data_ptr() for p in policy.model.parameters()}
    free, frozen = (policy.value_model(freeze_attention=flag) for flag in (False, True))
    assert not places & {p.data_ptr() for p in free.parameters().values()}
    left_out = free.parameters().keys() - frozen.parameters().keys()
    assert left_out
    assert all("attn" in name for name in left_out)
    assert not any("attn" in name for name in frozen.parameters())
    assert frozen.state_dict().keys() == free.state_dict().keys()


def test_a_lambda_of_its_own_for_each_sample():
    """Advantages with V = 0: the reward, discounted by λ of the sample's own length."""
    for length in (1, 2, 7):
        found = gae(
            torch.zeros(length),
            torch.eye(length)[-1],
            torch.ones(length, dtype=torch.bool),
            length_lambda(length),
        )
        lam = 1 - 1 / (1.5 * length)
        assert found.advantages.tolist() == pytest.approx([lam**j for j in range(length)][::-1])
