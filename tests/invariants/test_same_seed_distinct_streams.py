"""No two samples share a stream, and a stream depends on nothing but its name."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.policy.noise import stream_keys, uniforms
from async_rollout.types import SampleId, SampleRequest
from tiny_policy import drain, sample_requests, tiny_policy

NAMES = st.tuples(*[st.integers(0, 2**40)] * 3).map(lambda t: SampleId(*t))


def test_slots_order_and_company_do_not_matter() -> None:
    """The same requests give the same tokens with 4 slots, with 32, in reverse, and one by one."""
    policy = tiny_policy()
    requests = sample_requests(24)

    def tokens(slots: int, requests: list[SampleRequest]) -> dict[SampleId, list[int]]:
        finished = drain(policy.engine(slots=slots, seed=5, version=0), requests)
        return {name: t.response_ids.tolist() for name, t in finished.items()}

    expected = tokens(4, requests)
    assert expected == tokens(32, requests) == tokens(5, requests[::-1])
    assert expected == {k: v for r in requests for k, v in tokens(1, [r]).items()}


def test_samples_of_a_group_differ_and_a_seed_repeats() -> None:
    """Same prompt: samples, attempts, groups and seeds all draw differently; the same name never does."""
    policy, prompt = tiny_policy(stop_ids=()), np.array([5, 6, 7], dtype=np.int32)
    names = [SampleId(*t) for t in itertools.product(range(2), range(3), range(2))]

    def draw(seed: int) -> list[tuple[int, ...]]:
        finished = drain(
            policy.engine(slots=12, seed=seed, version=0), [SampleRequest(n, prompt, 12) for n in names]
        )
        return [tuple(finished[n].response_ids) for n in names]

    first = draw(0)
    assert len(set(first)) == len(names)
    assert first == draw(0)
    assert not set(first) & set(draw(1))


@given(st.lists(NAMES, min_size=2, max_size=20, unique=True), st.integers(0, 2**63))
def test_names_give_distinct_keys(names: list[SampleId], seed: int) -> None:
    """Keys differ for different names, and one name's key does not depend on the others."""
    keys = stream_keys(seed, names)
    assert len(set(keys.tolist())) == len(names)
    assert stream_keys(seed, names[-1:])[0] == keys[-1]


@given(st.integers(0, 2**63), NAMES, st.integers(0, 10_000))
def test_uniforms_stay_in_range(seed: int, name: SampleId, position: int) -> None:
    """At least 0, below 1, and a function of its arguments."""
    key = stream_keys(seed, [name])
    value = uniforms(key, np.array([position]))
    assert 0 <= value[0] < 1
    assert value == uniforms(key, np.array([position]))


@pytest.mark.parametrize("axis", range(4))
def test_noise_is_uniform_and_uncorrelated_along_every_axis(axis: int) -> None:
    """Along group, sample, attempt or position alone: flat histogram, no correlation of neighbours."""
    n = 20_000
    names = [[0, 0, 0] for _ in range(n)]
    positions = np.zeros(n, dtype=np.int64)
    if axis == 3:
        positions = np.arange(n)
    else:
        for i, name in enumerate(names):
            name[axis] = i
    values = uniforms(stream_keys(0, [SampleId(*name) for name in names]), positions)
    counts = np.histogram(values, bins=50, range=(0, 1))[0]
    assert ((counts - n / 50) ** 2 / (n / 50)).sum() < 100  # chi-square, 49 degrees of freedom: p < 1e-4
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.03
