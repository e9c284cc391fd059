"""The judges that a run has, as `reward.backend` says: processes of its own, or workers that share files."""

from collections.abc import Sequence
from pathlib import Path

from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.pool import RewardPool
from async_rollout.rewards.shards.pool import ShardedRewards

Rewards = RewardPool | ShardedRewards


def build_rewards(paths: Sequence[Path], config: RewardConfig, out: Path) -> Rewards:
    """Not started yet. Both keep the same promises."""
    if config.backend == "file_shards":
        return ShardedRewards(paths, config, out / "reward")
    return RewardPool(paths, config, trace=out / "trace")
