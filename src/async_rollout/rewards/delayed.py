"""Verdicts that come later than they could: what slow judges do to a run's schedule.

How long an answer's verdict is held back is drawn from an exponential distribution and is a
function of (seed, key) alone: it depends neither on the order of answers nor on the machine.
"""

import heapq
import math
import time
from collections.abc import Hashable
from hashlib import blake2b
from itertools import count
from typing import Any

from async_rollout.config.run import RunConfig
from async_rollout.rewards.backend import Rewards
from async_rollout.types import SampleId, Verdict


class DelayedRewards:
    """Rewards (see backend.py) that hold back verdicts of a run's samples; evaluation's pass at once."""

    def __init__(self, rewards: Rewards, mean_sec: float, seed: int):
        self._rewards = rewards
        self._mean = mean_sec
        self._seed = seed
        self._held: list[tuple[float, int, Hashable, Verdict]] = []  # a heap, by when they are due
        self._numbers = count()  # of two due at once the first that came

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rewards, name)

    def poll(self) -> list[tuple[Hashable, Verdict]]:
        """Verdicts that have arrived and were held back long enough."""
        now, done = time.monotonic(), []
        for key, verdict in self._rewards.poll():
            due = now + delay(self._mean, self._seed, key) if isinstance(key, SampleId) else now
            heapq.heappush(self._held, (due, next(self._numbers), key, verdict))
        while self._held and self._held[0][0] <= now:
            _, _, key, verdict = heapq.heappop(self._held)
            done.append((key, verdict))
        return done

    @property
    def pending(self) -> int:
        """Answers submitted that `poll` has not returned."""
        return self._rewards.pending + len(self._held)

    def patience(self) -> float:
        """Seconds after which `poll` is due even if nothing can be read."""
        patience = self._rewards.patience()
        return min(patience, max(0.0, self._held[0][0] - time.monotonic())) if self._held else patience


def held_back(rewards: Rewards, run: RunConfig) -> Rewards | DelayedRewards:
    """The same rewards, delayed if `stress.judge_sec` says so."""
    delayed = run.stress.judge_sec
    return DelayedRewards(rewards, delayed, run.seed) if delayed else rewards


def delay(mean_sec: float, seed: int, key: SampleId) -> float:
    """Seconds that this sample's verdict is held back: exponential, by inversion of a uniform number."""
    digest = blake2b(f"{seed} {tuple(key)}".encode(), digest_size=7).digest()
    return -mean_sec * math.log1p(-int.from_bytes(digest) / 2**56)
