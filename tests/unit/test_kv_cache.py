import itertools

import numpy as np
import torch

from async_rollout.policy.kv_cache import BLOCK, SlotCache
from async_rollout.types import SampleId, SampleRequest
from tiny_policy import VOCABULARY, drain, solo_logprobs, tiny_policy


def _decode_columns(cache: SlotCache, steps: int, length: int, rows: int = 2) -> int:
    """Append `steps` columns that hold their own number; returns the length then."""
    for _ in range(steps):
        cache.reserve(length, kept=length)
        states = torch.full((rows, 1, 1, 2), float(length))
        keys, _ = cache.update(states, states, 0)
        assert keys[0, 0, :, 0].tolist() == list(range(length + 1))
        cache.advance()
        length += 1
    return length


def test_columns_survive_growth_and_nothing_is_concatenated() -> None:
    cache = SlotCache(2)
    length, capacities = 0, set()
    for _ in range(4 * BLOCK):
        length = _decode_columns(cache, 1, length)
        capacities.add(cache.capacity)
    assert len(capacities) <= 4
    assert cache.capacity <= 1.25 * length + 2 * BLOCK


def test_short_samples_for_ever_need_no_more_storage() -> None:
    """The head moves on past the end again and again; holes on the left are given back."""
    cache = SlotCache(2)
    length = _decode_columns(cache, 10, 0)
    for _ in range(20 * BLOCK):
        cache.reserve(length, kept=length)
        states = torch.zeros(2, 1, 1, 2)
        keys, _ = cache.update(states, states, 0)
        assert keys.shape[2] == length + 1
        cache.advance()  # a sample of 10 tokens ended, one of 9 goes on: 10 again
    assert cache.capacity == BLOCK + BLOCK


def test_a_longer_prompt_than_the_head_moves_everything_right() -> None:
    cache = SlotCache(2)
    length = _decode_columns(cache, 5, 0)
    cache.reserve(40, kept=length)
    states = torch.zeros(2, 1, 1, 2)
    keys, _ = cache.update(states, states, 0)
    assert keys.shape[2] == 41
    assert keys[0, 0, -6:-1, 0].tolist() == [0, 1, 2, 3, 4]


def test_a_long_run_with_holes_equals_solo_decoding() -> None:
    """Short samples come and go beside long ones, far past the storage of the first step."""
    policy = tiny_policy(stop_ids=())
    rng = np.random.default_rng(0)
    requests = []
    for i in range(60):
        length = 120 if i % 20 == 0 else int(rng.integers(1, 15))
        prompt = rng.integers(3, VOCABULARY, size=rng.choice([1, 4, 30])).astype(np.int32)
        requests.append(SampleRequest(SampleId(i, 0), prompt, length))
    engine = policy.engine(slots=6, seed=0, version=0)
    cache, seen = engine._cache, []
    finished = drain(engine, requests, lambda step: seen.append((cache.head, cache.capacity)))
    moved_left = sum(b[0] < a[0] for a, b in itertools.pairwise(seen))
    assert moved_left >= 1
    assert max(capacity for _, capacity in seen) <= 320  # of 150 columns in use at most
    for trajectory in finished.values():
        np.testing.assert_allclose(trajectory.behavior_logprobs, solo_logprobs(policy, trajectory), atol=1e-4)
