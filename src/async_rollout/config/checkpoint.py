"""When a run's state is kept, so that a crash costs little."""

from async_rollout.config.block import Block, key


class CheckpointConfig(Block):
    """Checkpoints lie in the cell's directory, the last two of them, and go when it is done."""

    every: int | None = key(
        20,
        "updates between two checkpoints; 0 or empty: none, an interrupted run begins anew",
        unit="updates",
        ge=0,
    )
    grace_sec: float = key(
        30,
        "at SIGTERM or SIGUSR1 the step under way gets this long to end and be kept; else the last "
        "checkpoint has to do",
        unit="s",
        gt=0,
    )

    def due(self, version: int) -> bool:
        """True for the versions that are kept without anybody asking."""
        return bool(self.every) and version % self.every == 0
