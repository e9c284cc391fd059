import numpy as np
import pytest
import torch

from async_rollout.policy.noise import stream_keys, uniforms
from async_rollout.policy.sampling import NonFiniteLogit, Sampler
from async_rollout.types import SampleId

N = 40_000


def _logits(n: int = 1, vocabulary: int = 12, seed: int = 0) -> torch.Tensor:
    return 2 * torch.randn(n, vocabulary, generator=torch.Generator().manual_seed(seed))


def _softmax(logits: np.ndarray, temperature: float) -> np.ndarray:
    z = np.exp((logits - logits.max(axis=-1, keepdims=True)) / temperature)
    return z / z.sum(axis=-1, keepdims=True)


def _frequencies(sampler: Sampler, logits: torch.Tensor) -> np.ndarray:
    noise = uniforms(stream_keys(0, [SampleId(i, 0) for i in range(N)]), np.zeros(N))
    tokens, _ = sampler.draw(logits.expand(N, -1), noise)
    return np.bincount(tokens, minlength=logits.shape[-1]) / N


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_tokens_come_as_often_as_softmax_says(temperature: float) -> None:
    logits = _logits()
    expected = _softmax(logits[0].double().numpy(), temperature)
    error = np.abs(_frequencies(Sampler(temperature), logits) - expected)
    assert (error < 4.5 * np.sqrt(expected * (1 - expected) / N) + 1e-9).all()


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_logprobs_are_of_the_tempered_full_softmax(temperature: float) -> None:
    logits = _logits(50, 30)
    expected = np.log(_softmax(logits.double().numpy(), temperature))
    noise = np.linspace(0, 0.999, 50)
    for sampler in (
        Sampler(temperature),
        Sampler(temperature, top_k=3),
        Sampler(temperature, top_p=0.5),
        Sampler(temperature, greedy=True),
    ):
        tokens, logprobs = sampler.draw(logits, noise)
        assert tokens.dtype == np.int32
        assert logprobs.dtype == np.float32
        np.testing.assert_allclose(logprobs, expected[np.arange(50), tokens], atol=1e-5)


def test_top_k_keeps_k_and_top_p_the_smallest_nucleus() -> None:
    logits = torch.tensor([[0.1, 0.4, 0.2, 0.3]]).log()
    np.testing.assert_allclose(_frequencies(Sampler(top_k=2), logits), [0, 4 / 7, 0, 3 / 7], atol=0.02)
    np.testing.assert_allclose(_frequencies(Sampler(top_p=0.65), logits), [0, 4 / 7, 0, 3 / 7], atol=0.02)
    np.testing.assert_allclose(_frequencies(Sampler(top_p=0.75), logits), [0, 4 / 9, 2 / 9, 3 / 9], atol=0.02)
    np.testing.assert_allclose(_frequencies(Sampler(top_p=1e-9), logits), [0, 1, 0, 0])
    both = Sampler(top_k=3, top_p=0.5)  # 4/9 of what top-k leaves is not enough, 7/9 is
    np.testing.assert_allclose(_frequencies(both, logits), [0, 4 / 7, 0, 3 / 7], atol=0.02)


def test_greedy_takes_the_largest_whatever_the_noise() -> None:
    logits = _logits(20)
    tokens, _ = Sampler(greedy=True).draw(logits, np.linspace(0, 0.999, 20))
    assert tokens.tolist() == logits.argmax(dim=-1).tolist()


def test_extreme_noise_never_draws_an_impossible_token() -> None:
    logits = torch.full((2, 6), -1e4)
    logits[:, 2:4] = 0
    tokens, logprobs = Sampler().draw(logits, np.array([0.0, 1 - 2.0**-52]))
    assert tokens.tolist() == [2, 3]
    assert np.isfinite(logprobs).all()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("greedy", [True, False])
def test_a_non_finite_logit_is_named(value: float, greedy: bool) -> None:
    logits = _logits(4)
    logits[2, 7] = value
    with pytest.raises(NonFiniteLogit, match=f"token 7 is {value}") as caught:
        Sampler(greedy=greedy).draw(logits, np.full(4, 0.5))
    assert caught.value.row == 2
