"""One training step on a policy that can be checked by hand."""

import copy
import itertools

import numpy as np
import pytest
import torch

from async_rollout.algorithms.ratio import NonFiniteError
from async_rollout.learner.batching import split
from async_rollout.learner.learner import Learner
from learning import BigramPolicy, groups, run_config


def by_hand(policy: BigramPolicy, batch, config, version: int) -> tuple[torch.Tensor, list[float]]:
    """Table after one decoupled step and the loss of each minibatch, trajectory by trajectory."""
    policy = copy.deepcopy(policy)
    optimizer = torch.optim.AdamW(
        [policy.table], lr=config.optim.lr, betas=config.optim.betas, weight_decay=0, fused=False
    )
    rows = []
    for group in batch:
        rewards = np.array([s.verdict.reward for s in group.samples])
        scaled = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
        for sample, advantage in zip(group.samples, scaled, strict=True):
            rows.append((sample.trajectory, advantage, policy.logprob(sample.trajectory).detach()))
    losses = []
    for chosen in split(len(rows), config.batch.minibatches, config.seed, version):
        total, tokens = 0.0, 0
        for t, advantage, proximal in (rows[i] for i in chosen):
            u = (policy.logprob(t) - proximal).exp()
            w = (proximal - torch.from_numpy(t.behavior_logprobs)).exp()
            w = torch.where(w > 5, 0.0, w)
            total = total - (w * torch.minimum(u * advantage, u.clamp(0.8, 1.2) * advantage)).sum()
            tokens += len(t.response_ids)
        optimizer.zero_grad()
        (total / tokens).backward()
        torch.nn.utils.clip_grad_norm_([policy.table], 1.0)
        optimizer.step()
        losses.append(float(total.detach()) / tokens)
    return policy.table.detach(), losses


@pytest.mark.parametrize("minibatches", [1, 2, 4])
def test_step_equals_the_step_by_hand(minibatches):
    config = run_config(batch={"groups": 2, "group_size": 4, "minibatches": minibatches}, optim={"lr": 0.3})
    policy, batch = BigramPolicy(), groups(versions=(0, 3))
    expected, losses = by_hand(policy, batch, config, version=3)
    before = policy.table.detach().clone()
    metrics = Learner(config, policy, "cpu").step(batch, version=3)
    assert not torch.allclose(before, expected, atol=0.1)
    torch.testing.assert_close(policy.table.detach(), expected, atol=1e-5, rtol=1e-5)
    assert metrics.loss == pytest.approx(np.mean(losses), abs=1e-6)
    assert metrics.optimizer_steps == minibatches
    assert not metrics.empty


@pytest.mark.parametrize(
    ("minibatches", "objective", "extra"),
    [
        (2, {"name": "decoupled"}, 1),
        (1, {"name": "decoupled"}, 0),
        (2, {"name": "decoupled", "proximal": "interpolate"}, 0),
        (2, {"name": "decoupled", "proximal": "behavior"}, 0),
        (2, {"name": "behavior"}, 0),
        (2, {"name": "live"}, 0),
    ],
)
def test_proximal_pass_only_where_it_says_something(minibatches, objective, extra):
    batch = {"groups": 2, "group_size": 4, "minibatches": minibatches}
    policy = BigramPolicy()
    Learner(run_config(batch=batch, objective=objective), policy, "cpu").step(groups(), version=0)
    assert policy.scored == [(8, False)] * extra + [(8 // minibatches, True)] * minibatches


def test_metrics_equal_their_definitions():
    config = run_config(batch={"groups": 2, "group_size": 4, "minibatches": 1}, objective={"name": "live"})
    policy, batch = BigramPolicy(), groups(versions=(1, 3))
    samples = [s.trajectory for g in batch for s in g.samples]
    behavior = torch.from_numpy(np.concatenate([t.behavior_logprobs for t in samples]))
    log_r = torch.cat([policy.logprob(t).detach() for t in samples]) - behavior
    ages = 3 - np.concatenate([t.versions for t in samples])
    metrics = Learner(config, policy, "cpu").step(batch, version=3)
    assert metrics.trained_tokens == len(log_r)
    assert metrics.trained_samples == 8
    assert metrics.kl == pytest.approx(float((log_r.exp() - 1 - log_r).mean()))
    assert metrics.importance_weight_mean == pytest.approx(float(log_r.exp().mean()))
    assert metrics.importance_weight_max == pytest.approx(float(log_r.exp().max()))
    assert metrics.first_logratio_max == pytest.approx(float(log_r.abs().max()))
    assert metrics.staleness == {
        int(a): int(n) for a, n in zip(*np.unique(ages, return_counts=True), strict=True)
    }
    assert metrics.reward_mean == 3 / 8
    assert metrics.clip_fraction == metrics.mask_fraction == metrics.saturations == 0
    assert 0 < metrics.entropy < np.log(11)
    assert 0 < metrics.ess_ratio < 1


def test_batch_without_signal_leaves_the_weights_and_still_measures():
    policy = BigramPolicy()
    learner = Learner(run_config(), policy, "cpu")
    learner.step(groups(), version=0)  # so that the optimizer has momentum
    before = policy.table.detach().clone()
    metrics = learner.step(groups(seed=1, rewards=((1, 1, 1, 1), (0, 0, 0, 0))), version=1)
    assert torch.equal(policy.table.detach(), before)
    assert metrics.empty
    assert metrics.optimizer_steps == 0
    assert metrics.loss == metrics.grad_norm == 0
    assert metrics.zero_variance_groups == 1
    assert metrics.trained_tokens == sum(metrics.staleness.values()) > 0
    assert metrics.entropy > 0
    assert metrics.kl > 0


def test_kl_alone_is_a_signal():
    policy = BigramPolicy()
    config = run_config(kl={"coef": 0.1})
    metrics = Learner(config, policy, "cpu").step(groups(rewards=((1, 1), (0, 0))), version=0)
    assert not metrics.empty
    assert metrics.loss == pytest.approx(0.1 * metrics.kl, rel=0.2)
    assert metrics.optimizer_steps == 2


def test_nothing_but_masked_samples():
    config = run_config(advantage={"truncated": "mask"}, kl={"coef": 0.1})
    metrics = Learner(config, BigramPolicy(), "cpu").step(groups(finish_reason="length"), version=0)
    assert metrics.empty
    assert metrics.trained_tokens == metrics.trained_samples == metrics.entropy == 0
    assert metrics.staleness == {}


def test_initial_reference_stays_and_pulls_back():
    config = run_config(kl={"coef": 1.0, "reference": "initial"}, optim={"lr": 0.1})
    policy = BigramPolicy()
    start = policy.table.detach().clone()
    learner = Learner(config, policy, "cpu")
    with torch.no_grad():
        policy.table += torch.randn(policy.table.shape, generator=torch.Generator().manual_seed(1))
    silent = ((1, 1, 1, 1), (0, 0, 0, 0))
    divergences = [learner.step(groups(seed=s, rewards=silent), version=s).kl for s in range(5)]
    assert divergences[0] > 0.1
    visited = policy.table.detach()
    assert divergences[-1] < divergences[0]
    torch.testing.assert_close(learner._initial.table.detach(), start)
    assert not torch.equal(visited, start)


def test_no_copy_of_the_policy_without_need():
    for kl in ({"coef": 0.0, "reference": "initial"}, {"coef": 0.1, "reference": "behavior"}):
        assert Learner(run_config(kl=kl), BigramPolicy(), "cpu")._initial is None


def test_policy_that_is_not_finite_stops_with_its_name():
    policy = BigramPolicy()
    with torch.no_grad():
        policy.table[3] = torch.nan
    with pytest.raises(NonFiniteError, match="log π_"):
        Learner(run_config(), policy, "cpu").step(groups(), version=0)


def test_gradient_that_is_not_finite_stops_with_the_parameter():
    policy = BigramPolicy()
    before = policy.table.detach().clone()
    policy.table.register_hook(lambda gradient: gradient * torch.inf)
    with pytest.raises(NonFiniteError, match="gradient of table is not finite at version 5"):
        Learner(run_config(k=5), policy, "cpu").step(groups(), version=5)
    assert torch.equal(policy.table.detach(), before)


def test_learning_rate_warms_up_linearly():
    """Adam's first step moves every weight by the learning rate."""
    moved = []
    for version in (0, 4, 9, 50):
        policy = BigramPolicy()
        before = policy.table.detach().clone()
        config = run_config(
            k="inf",
            batch={"groups": 2, "group_size": 4, "minibatches": 1},
            optim={"lr": 0.1, "warmup_updates": 10},
        )
        Learner(config, policy, "cpu").step(groups(), version=version)
        moved.append(float((policy.table.detach() - before).abs().max()))
    assert moved == pytest.approx([0.01, 0.05, 0.1, 0.1], rel=1e-3)


def test_gradient_is_clipped_and_its_norm_reported_before():
    policy = BigramPolicy()
    config = run_config(
        batch={"groups": 2, "group_size": 4, "minibatches": 1}, optim={"grad_clip": 1e-12, "lr": 0.1}
    )
    before = policy.table.detach().clone()
    metrics = Learner(config, policy, "cpu").step(groups(), version=0)
    assert metrics.grad_norm > 0.1
    assert float((policy.table.detach() - before).abs().max()) < 1e-4  # Adam's ε dominates what is left


def test_state_goes_on_bit_for_bit():
    policy = BigramPolicy()
    learner = Learner(run_config(), policy, "cpu")
    learner.step(groups(), version=0)
    resumed = copy.deepcopy(policy)
    successor = Learner(run_config(), resumed, "cpu")
    successor.load_state_dict(copy.deepcopy(learner.state_dict()))
    assert learner.step(groups(seed=1), version=1) == successor.step(groups(seed=1), version=1)
    assert torch.equal(policy.table, resumed.table)


def test_the_running_mean_looks_back_on_earlier_batches_and_survives_a_checkpoint():
    """Window 10, batches of 8: batch 2 is compared with the last 10 rewards of batches 0 and 1."""
    config = run_config(
        algorithm="running_mean",
        advantage={"name": "running_mean", "window": 10},
        objective={"name": "live"},
        batch={"groups": 2, "group_size": 4, "minibatches": 1},
    )
    rewards = [((0, 1, 1, 1), (1, 0, 0, 0)), ((1, 1, 0, 1), (0, 0, 1, 1)), ((0, 0, 0, 1), (0, 1, 0, 0))]
    history: list[float] = []
    policy = BigramPolicy()
    learner = Learner(config, policy, "cpu")
    for version, rows in enumerate(rewards):
        batch = groups(seed=version, rewards=rows, versions=(version, version))
        flat = [reward for row in rows for reward in row]
        baseline = np.mean(history[-10:]) if history else 0.0
        lengths = [len(s.trajectory.response_ids) for g in batch for s in g.samples]
        expected = -np.dot(np.subtract(flat, baseline), lengths) / sum(lengths)
        resumed = Learner(config, policy, "cpu")
        resumed.load_state_dict(copy.deepcopy(learner.state_dict()))
        learner = resumed
        assert learner.step(batch, version).loss == pytest.approx(expected, abs=1e-6)
        history += flat


@pytest.mark.parametrize("name", ["dis", "gspo", "cispo"])
def test_other_objectives_train(name):
    policy = BigramPolicy()
    before = policy.table.detach().clone()
    metrics = Learner(run_config(objective={"name": name}), policy, "cpu").step(groups(), version=0)
    assert metrics.optimizer_steps == 2
    assert not torch.equal(policy.table.detach(), before)


def test_the_cosine_is_between_the_gradients_of_successive_steps():
    config = run_config(train={"gradient_cosine": True}, objective={"name": "behavior"}, optim={"lr": 0.1})
    policy = BigramPolicy()
    learner = Learner(config, policy, "cpu")
    seen: list[torch.Tensor] = []
    policy.table.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    found = [learner.step(groups(seed=v), version=v).grad_cosine for v in range(2)]
    assert len(seen) == 4  # two updates of two minibatches, each in one micro-batch
    cosines = [float((a * b).sum() / a.norm() / b.norm()) for a, b in itertools.pairwise(seen)]
    assert found == pytest.approx([cosines[0], (cosines[1] + cosines[2]) / 2])
    assert Learner(run_config(), BigramPolicy(), "cpu").step(groups(), version=0).grad_cosine is None


def test_loss_scaling_changes_no_update_and_skips_what_overflows():
    plain, scaled = BigramPolicy(dtype=torch.float32), BigramPolicy(dtype=torch.float32)
    Learner(run_config(), plain, "cpu").step(groups(), version=0)
    learner = Learner(run_config(model={"autocast": "float16"}), scaled, "cpu")
    assert learner.step(groups(), version=0).optimizer_steps == 2
    torch.testing.assert_close(plain.table, scaled.table, atol=1e-6, rtol=1e-5)

    before = scaled.table.detach().clone()
    scale = learner.state_dict()["optimizer"]["scaler"]["scale"]
    scaled.table.register_hook(lambda gradient: gradient * torch.inf)
    metrics = learner.step(groups(seed=1), version=1)
    assert metrics.optimizer_steps == 0
    assert torch.equal(scaled.table, before)
    assert learner.state_dict()["optimizer"]["scaler"]["scale"] == scale / 4
    with pytest.raises(NonFiniteError, match="gradient of table"):
        _step_for_ever(learner)


def _step_for_ever(learner: Learner) -> None:
    for version in range(2, 100):
        learner.step(groups(seed=2, versions=(version, version)), version=version)


@pytest.mark.parametrize("how", ["token_mean", "seq_mean", "constant"])
def test_aggregation_is_the_configured_one(how):
    config = run_config(
        objective={"name": "live", "aggregation": how},
        batch={"groups": 2, "group_size": 4, "minibatches": 1},
    )
    batch = groups()
    flat = [(len(s.trajectory.response_ids), s.verdict.reward) for g in batch for s in g.samples]
    rewards = np.array([r for _, r in flat]).reshape(2, 4)
    scaled = (rewards - rewards.mean(1, keepdims=True)) / (rewards.std(1, keepdims=True) + 1e-4)
    lengths = np.array([n for n, _ in flat])
    total = -(scaled.flatten() * lengths).sum()
    expected = {
        "token_mean": total / lengths.sum(),
        "seq_mean": -scaled.mean(),
        "constant": total / (8 * 16),
    }
    metrics = Learner(config, BigramPolicy(), "cpu").step(batch, version=0)
    assert metrics.loss == pytest.approx(expected[how], abs=1e-6)


def test_scores_are_taken_at_the_sampling_temperature():
    """Behaviour log-probabilities of the same weights at the same temperature: the ratio is 1."""
    policy, batch = BigramPolicy(), groups()
    for group in batch:
        for t in (s.trajectory for s in group.samples):
            ids = torch.from_numpy(t.response_ids.astype(np.int64))
            previous = torch.cat([torch.tensor([int(t.prompt_ids[-1])]), ids[:-1]])
            logprobs = (policy.table.detach()[previous] / 0.6).log_softmax(-1)
            t.behavior_logprobs[:] = logprobs[torch.arange(len(ids)), ids].numpy()
    metrics = Learner(run_config(sampling={"temperature": 0.6}), policy, "cpu").step(batch, version=0)
    assert metrics.first_logratio_max < 1e-6
