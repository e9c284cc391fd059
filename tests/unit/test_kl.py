"""The penalties against their formulas; their sign and direction."""

import math

import pytest
import torch

from async_rollout.algorithms import kl

SEEN = torch.tensor([[True, True, False]])


def logprobs(*values: float) -> torch.Tensor:
    return torch.tensor([values], dtype=torch.float64)


def both(policy, sampler, reference, estimator):
    """(penalty to behavior, penalty to initial) where `reference` plays the reference's part."""
    return (
        kl.to_behavior(policy, reference, SEEN, estimator),
        kl.to_initial(policy, sampler, reference, SEEN, estimator),
    )


def test_formulas_and_gradients():
    p, b, i = -0.3, -0.9, -1.7
    for estimator, value, slope in (
        ("k3", lambda r: r - 1 - math.log(r), lambda r: r - 1),
        ("k2", lambda r: math.log(r) ** 2 / 2, lambda r: math.log(r)),
    ):
        policy = logprobs(p, p, p).requires_grad_()
        penalty = kl.to_behavior(policy, logprobs(b, b, b), SEEN, estimator)
        penalty.sum().backward()
        r = math.exp(p - b)
        assert penalty[0].tolist() == pytest.approx([value(r), value(r), 0], abs=1e-12)
        assert policy.grad[0].tolist() == pytest.approx([slope(r), slope(r), 0], abs=1e-12)

        policy = logprobs(p, p, p).requires_grad_()
        penalty = kl.to_initial(policy, logprobs(b, b, b), logprobs(i, i, i), SEEN, estimator)
        penalty.sum().backward()
        r, weight = math.exp(i - p), math.exp(p - b)
        assert penalty[0].tolist() == pytest.approx([weight * value(r)] * 2 + [0], abs=1e-12)
        assert policy.grad[0].tolist() == pytest.approx([-weight * slope(r)] * 2 + [0], abs=1e-12)


@pytest.mark.parametrize("estimator", ["k3", "k2"])
def test_zero_at_equality_and_pulls_back_elsewhere(estimator):
    for moved in (0.5, -0.5):
        reference = logprobs(-1.0, -1.0, -1.0)
        policy = logprobs(-1.0 + moved, -1.0, -1.0).requires_grad_()
        for penalty in both(policy, reference, reference, estimator):
            policy.grad = None
            penalty.sum().backward()
            assert penalty[0, 0] > 0
            assert penalty[0, 1] == 0
            assert math.copysign(1, float(policy.grad[0, 0])) == math.copysign(1, moved)
            assert policy.grad[0, 1:].tolist() == [0, 0]


def test_never_negative():
    g = torch.Generator().manual_seed(0)
    policy, sampler, reference = (-5 * torch.rand(50, 3, generator=g) for _ in range(3))
    for estimator in ("k3", "k2"):
        for penalty in both(policy, sampler, reference, estimator):
            assert (penalty >= 0).all()


def test_weight_of_the_initial_reference_is_capped_at_five_and_detached():
    policy = logprobs(-0.1, -0.1, -0.1).requires_grad_()
    penalty = kl.to_initial(policy, logprobs(-9.0, -9.0, -9.0), logprobs(-1.1, -1.1, -1.1), SEEN, "k2")
    penalty.sum().backward()
    assert penalty[0, 0].item() == pytest.approx(5 * 0.5)
    assert policy.grad[0, 0].item() == pytest.approx(5 * 1.0)


@pytest.mark.parametrize("gap", [120.0, -120.0])
@pytest.mark.parametrize("estimator", ["k3", "k2"])
def test_far_apart_is_finite(estimator, gap):
    policy = torch.tensor([[-130.0 + gap, -1.0, -1.0]], requires_grad=True)
    for penalty in both(policy, torch.full((1, 3), -1.0), torch.full((1, 3), -130.0), estimator):
        penalty.sum().backward()
        assert torch.isfinite(penalty).all()
        assert torch.isfinite(policy.grad).all()


def test_unknown_estimator_is_refused():
    with pytest.raises(ValueError, match="k1"):
        kl.estimate(torch.zeros(1), "k1")
