"""A reward pool that now and then cannot judge, for runs that must survive it."""

import math
from collections.abc import Hashable

from async_rollout.rewards.pool import RewardPool
from async_rollout.types import SampleId, Verdict

FAILED = Verdict(math.nan, "infrastructure", "no judge could", infrastructure=True)


class UnreliablePool(RewardPool):
    """True verdicts, but for one training sample in 37, always the same ones; evaluation is judged."""

    def poll(self) -> list[tuple[Hashable, Verdict]]:
        return [(key, FAILED if _fails(key) else verdict) for key, verdict in super().poll()]


def _fails(key: Hashable) -> bool:
    return isinstance(key, SampleId) and (4 * key.group + key.sample) % 37 == 36
