"""Sampling noise: a pure function of (seed, group, sample, attempt, position).

No state is kept, so a sample's stream depends neither on the slot or the worker that draws
it nor on what else is drawn, and an interrupted sample goes on with its own stream.
The hash is splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number
generators"), vectorised over samples; numpy's uint64 arrays wrap around as it wants.
"""

from collections.abc import Sequence

import numpy as np

from async_rollout.types import SampleId

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)
_WORD = (1 << 64) - 1


def stream_keys(seed: int, ids: Sequence[SampleId]) -> np.ndarray:
    """One key (n,) uint64 for each sample: the name of its stream."""
    key = np.full(len(ids), seed & _WORD, dtype=np.uint64)
    for word in np.array(ids, dtype=np.uint64).reshape(len(ids), 3).T:
        key = _mix(key + _GAMMA) ^ word
    return _mix(key + _GAMMA)


def uniforms(keys: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """One float64 in [0, 1 - 2**-52] for each (key, position), positions counted from 0."""
    words = _mix(keys + (positions.astype(np.uint64) + np.uint64(1)) * _GAMMA)
    return (words >> np.uint64(12)) * 2.0**-52


def _mix(words: np.ndarray) -> np.ndarray:
    words = (words ^ (words >> np.uint64(30))) * _FACTORS[0]
    words = (words ^ (words >> np.uint64(27))) * _FACTORS[1]
    return words ^ (words >> np.uint64(31))
