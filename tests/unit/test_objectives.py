"""Every loss, and its gradient, against formulas written out token by token in plain floats."""

import math
from functools import partial

import pytest
import torch

from async_rollout.algorithms.diagnostics import diagnose
from async_rollout.algorithms.objectives import Tokens, behavior, clip, decoupled, live
from async_rollout.algorithms.proximal import interpolate
from async_rollout.algorithms.ratio import NonFiniteError
from async_rollout.algorithms.sequence import gspo
from async_rollout.algorithms.weighted import BANDS, cispo, dis


def ragged(seed: int, spread: float = 0.5, rows: int = 7, width: int = 9) -> Tokens:
    """Random rows of random length, some with a hole as an observation leaves it."""
    g = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, width + 1, (rows, 1), generator=g)
    mask = (torch.arange(width) < lengths) & (torch.rand(rows, width, generator=g) < 0.9)
    behavior_logprobs = -3 * torch.rand(rows, width, generator=g, dtype=torch.float64)
    advantages = torch.randn(rows, width, generator=g, dtype=torch.float64).round(decimals=1)
    noise = partial(torch.randn, rows, width, generator=g, dtype=torch.float64)
    return Tokens(
        logprobs=(behavior_logprobs + spread * noise()).requires_grad_(),
        behavior=behavior_logprobs,
        advantages=advantages,
        mask=mask,
        proximal=behavior_logprobs + spread * noise(),
    )


def ratio(log_p: float, log_q: float) -> tuple[float, float]:
    """(p/q with the log-ratio held within ±20, its derivative by log p)."""
    x = log_p - log_q
    r = math.exp(min(max(x, -20.0), 20.0))
    return r, r if abs(x) <= 20 else 0.0


def ppo(r: float, slope: float, a: float, low: float, high: float, dual: float | None) -> tuple:
    """(−min(ra, clip(r)a), at least its dual bound; derivative)."""
    free, held = r * a, min(max(r, 1 - low), 1 + high) * a
    loss, gradient = (-free, -a * slope) if free <= held else (-held, 0.0)
    if dual is not None and a < 0 and loss > -dual * a:
        loss, gradient = -dual * a, 0.0
    return loss, gradient


def expect_live(p, b, x, a):
    return -a, -a


def expect_behavior(p, b, x, a, low=0.2, high=0.2, dual=None):
    return ppo(*ratio(p, b), a, low, high, dual)


def expect_decoupled(p, b, x, a, low=0.2, high=0.2, dual=None, rule="mask", limit=5.0):
    w, _ = ratio(x, b)
    w = {"exact": w, "clamp": min(w, limit), "mask": w if w <= limit else 0.0, "omit": 1.0}[rule]
    loss, gradient = ppo(*ratio(p, x), a, low, high, dual)
    return w * loss, w * gradient


def expect_dis(p, b, x, a, low=0.7, high=6.0, detach=True):
    r, slope = ratio(p, b)
    kept = low < r < high
    return (-r * a * p, -r * a - (0 if detach else slope * a * p)) if kept else (0.0, 0.0)


def expect_cispo(p, b, x, a, high=0.2):
    r = min(ratio(p, b)[0], 1 + high)
    return -r * a * p, -r * a


CASES = {
    "live": (live, expect_live),
    "behavior": (behavior, expect_behavior),
    "behavior asymmetric": (
        partial(behavior, clip_low=0.1, clip_high=0.28),
        partial(expect_behavior, low=0.1, high=0.28),
    ),
    "behavior dual": (partial(behavior, dual_clip=1.5), partial(expect_behavior, dual=1.5)),
    "decoupled": (decoupled, expect_decoupled),
    "decoupled dual": (partial(decoupled, dual_clip=1.5), partial(expect_decoupled, dual=1.5)),
    **{
        f"decoupled {rule}": (
            partial(decoupled, weight=rule, weight_limit=1.3),
            partial(expect_decoupled, rule=rule, limit=1.3),
        )
        for rule in ("exact", "clamp", "mask", "omit")
    },
    "dis": (dis, expect_dis),
    "dis attached": (partial(dis, detach=False), partial(expect_dis, detach=False)),
    "dis closed": (partial(dis, band=BANDS["closed_03_5"]), partial(expect_dis, low=0.3, high=5.0)),
    "cispo": (cispo, expect_cispo),
}


@pytest.mark.parametrize("spread", [0.2, 1.5, 30.0])
@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient_equal_the_formula(name, spread):
    objective, expect = CASES[name]
    for seed in range(5):
        tokens = ragged(seed, spread)
        loss = objective(tokens).loss
        loss.sum().backward()
        for i, j in tokens.mask.nonzero().tolist():
            args = [float(v.detach()[i, j]) for v in (tokens.logprobs, tokens.behavior, tokens.proximal)]
            value, slope = expect(*args, float(tokens.advantages[i, j]))
            assert float(loss.detach()[i, j]) == pytest.approx(value, rel=1e-9, abs=1e-9)
            assert float(tokens.logprobs.grad[i, j]) == pytest.approx(slope, rel=1e-9, abs=1e-9)
        assert (loss[~tokens.mask] == 0).all()
        assert (tokens.logprobs.grad[~tokens.mask] == 0).all()


@pytest.mark.parametrize("spread", [0.2, 1.5])
def test_gspo_equals_the_formula(spread):
    for seed in range(5):
        tokens = ragged(seed, spread)
        loss = gspo(tokens).loss
        loss.sum().backward()
        for i in range(len(loss)):
            places = tokens.mask[i].nonzero().flatten().tolist()
            if not places:
                assert (loss[i] == 0).all()
                continue
            differences = [float(tokens.logprobs.detach()[i, j] - tokens.behavior[i, j]) for j in places]
            s = math.exp(sum(differences) / len(places))
            advantages = [float(tokens.advantages[i, j]) for j in places]
            parts = [ppo(s, s / len(places), a, 0.2, 0.2, None) for a in advantages]
            total = sum(slope for _, slope in parts)
            for j, (value, _) in zip(places, parts, strict=True):
                assert float(loss.detach()[i, j]) == pytest.approx(value, rel=1e-9, abs=1e-9)
                assert float(tokens.logprobs.grad[i, j]) == pytest.approx(total, rel=1e-9, abs=1e-9)


ALL = {name: objective for name, (objective, _) in CASES.items()} | {"gspo": gspo}


@pytest.mark.parametrize("name", ALL)
def test_all_tokens_masked_gives_zero_loss_and_gradient(name):
    tokens = ragged(0)
    tokens = Tokens(
        tokens.logprobs, tokens.behavior, tokens.advantages, torch.zeros_like(tokens.mask), tokens.proximal
    )
    result = ALL[name](tokens)
    result.loss.sum().backward()
    assert (result.loss == 0).all()
    assert (tokens.logprobs.grad == 0).all()
    assert not (result.clipped | result.masked | result.saturated).any()


def one_token(logprob: float, behavior_logprob: float, proximal: float, advantage: float) -> Tokens:
    values = [torch.tensor([[v]]) for v in (logprob, behavior_logprob, advantage, proximal)]
    p, b, a, x = values
    return Tokens(p.requires_grad_(), b, a, torch.tensor([[True]]), x)


@pytest.mark.parametrize("advantage", [-1.0, 1.0])
@pytest.mark.parametrize("gap", [-120.0, 120.0])
@pytest.mark.parametrize("name", ALL)
def test_log_ratio_of_120_is_finite_and_counted(name, gap, advantage):
    """Float32: e^120 would overflow."""
    tokens = one_token(-1.0 + min(gap, 0), -1.0 - max(gap, 0), -1.0, advantage)
    result = ALL[name](tokens)
    result.loss.sum().backward()
    assert torch.isfinite(result.loss).all()
    assert torch.isfinite(tokens.logprobs.grad).all()
    assert float(diagnose(result, tokens.mask).saturations) == 1


def test_padding_of_any_content_changes_nothing():
    tokens = ragged(3)
    garbage = torch.where(tokens.mask, tokens.behavior, torch.nan)
    clean, dirty = (
        behavior(tokens),
        behavior(Tokens(tokens.logprobs, garbage, tokens.advantages, tokens.mask)),
    )
    assert torch.equal(clean.loss, dirty.loss)
    dirty.loss.sum().backward()
    assert torch.isfinite(tokens.logprobs.grad).all()


@pytest.mark.parametrize(
    ("field", "name"), [("logprobs", "log π_θ"), ("behavior", "log π_behav"), ("proximal", "log π_prox")]
)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_named(field, name, value):
    values = {"logprobs": -1.0, "behavior": -1.0, "proximal": -1.0} | {field: value}
    tokens = one_token(values["logprobs"], values["behavior"], values["proximal"], 1.0)
    with pytest.raises(NonFiniteError, match=rf"not finite: {name}\)"):
        decoupled(tokens)


@pytest.mark.parametrize(
    ("advantage", "ratio_value", "used", "clipped"),
    [
        (1.0, 1.2, 1.2, False),
        (1.0, 1.2000001, 1.2, True),
        (1.0, 0.1, 0.1, False),
        (-1.0, 0.8, 0.8, False),
        (-1.0, 0.7999999, 0.8, True),
        (-1.0, 2.9, 2.9, False),
        (-1.0, 3.1, 3.0, True),
        (0.0, 100.0, 100.0, False),
    ],
)
def test_clip_at_its_edges(advantage, ratio_value, used, clipped):
    r = torch.tensor([ratio_value], dtype=torch.float64, requires_grad=True)
    value, marked = clip(r, torch.tensor([advantage], dtype=torch.float64), 0.2, 0.2, 3.0)
    value.sum().backward()
    assert float(value.detach()) == pytest.approx(used, abs=1e-12)
    assert bool(marked) is clipped
    assert float(r.grad) == (0.0 if clipped else 1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("band", "ratio_value", "kept"),
    [
        ("closed_03_5", 0.3, True),
        ("closed_03_5", 5.0, True),
        ("closed_03_5", 0.2999, False),
        ("closed_03_5", 5.0001, False),
        ("paper", 0.7, False),
        ("paper", 6.0, False),
        ("paper", 0.7001, True),
        ("paper", 5.9999, True),
    ],
)
def test_dis_at_the_edges_of_its_band(band, ratio_value, kept, dtype):
    for advantage in (-1.0, 1.0):
        logprob = torch.tensor([[math.log(ratio_value)]], dtype=dtype, requires_grad=True)
        zero = torch.zeros(1, 1, dtype=dtype)
        result = dis(Tokens(logprob, zero, zero + advantage, torch.tensor([[True]])), band=BANDS[band])
        result.loss.sum().backward()
        assert bool(logprob.grad != 0) is kept
        assert bool(result.masked) is not kept


def test_decoupled_is_behavior_when_the_proximal_policy_is_the_sampler():
    tokens = ragged(5)
    same = Tokens(tokens.logprobs, tokens.behavior, tokens.advantages, tokens.mask, tokens.behavior)
    assert torch.allclose(decoupled(same).loss, behavior(same).loss, atol=0, rtol=1e-12)


def test_decoupled_without_proximal_is_refused():
    tokens = ragged(5)
    with pytest.raises(ValueError, match="proximal"):
        decoupled(Tokens(tokens.logprobs, tokens.behavior, tokens.advantages, tokens.mask))


def test_interpolated_proximal_policy():
    tokens = ragged(6)
    staleness = torch.randint(0, 9, tokens.mask.shape, generator=torch.Generator().manual_seed(0))
    result = interpolate(tokens.logprobs, tokens.behavior, staleness)
    d = staleness.double()
    expected = tokens.behavior / (d + 1) + tokens.logprobs.detach() * d / (d + 1)
    assert torch.allclose(result, expected, atol=1e-12)
    assert not result.requires_grad
    assert torch.equal(result[staleness == 0], tokens.behavior[staleness == 0])


def test_diagnostics_add_up_over_any_split():
    tokens = ragged(8, spread=1.0)
    result = partial(decoupled, weight_limit=1.3)(tokens)
    whole = diagnose(result, tokens.mask)
    parts = []
    for rows in (slice(0, 2), slice(2, 7)):
        part = Tokens(
            *(getattr(tokens, f)[rows] for f in ("logprobs", "behavior", "advantages", "mask", "proximal"))
        )
        parts.append(diagnose(decoupled(part, weight_limit=1.3), part.mask))
    total = parts[0] + parts[1]
    for name in whole.__dataclass_fields__:
        assert float(getattr(total, name)) == pytest.approx(float(getattr(whole, name)), rel=1e-12)
    weights = (tokens.proximal - tokens.behavior).exp()[tokens.mask]
    assert float(whole.weight_max) == pytest.approx(float(weights.max()))
    assert float(whole.masked) == int((weights > 1.3).sum()) > 0
    assert float(whole.ess_ratio) == pytest.approx(
        float(weights.sum() ** 2 / (weights.square().sum() * len(weights)))
    )
    u = (tokens.logprobs.detach() - tokens.proximal).exp()
    bound = ((tokens.advantages > 0) & (u > 1.2)) | ((tokens.advantages < 0) & (u < 0.8))
    assert float(whole.clipped) == int((bound & tokens.mask).sum()) > 0
