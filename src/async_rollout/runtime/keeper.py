"""When a run's state is kept, and whether it leaves after that: what all schedules ask."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from async_rollout.config.checkpoint import CheckpointConfig
from async_rollout.runtime import checkpoint
from async_rollout.runtime.checkpoint import RunState
from async_rollout.runtime.stopping import Stopping


class Keeper:
    """Of one attempt: what it goes on from, and what it leaves to the next."""

    def __init__(
        self,
        out: Path,
        config: CheckpointConfig,
        stopping: Stopping,
        place: Path | None = None,
        state: RunState | None = None,
    ):
        self.place = place  # the checkpoint that this attempt goes on from
        self.state = state
        self.version = state.version if state else 0  # the newest that is kept
        self._out = out
        self._config = config
        self._stopping = stopping

    def wanted(self, version: int) -> bool:
        """True if the state at this version is to be kept now, after its commit."""
        asked = bool(self._config.every) and self._stopping.requested
        return version > self.version and (asked or self._config.due(version))

    def stage(self, version: int) -> Path:
        """Where the files of the next checkpoint go."""
        return checkpoint.stage(self._out, version)

    def finish(self, state: RunState, sums: Mapping[str, str]) -> None:
        """The staged files are written, with these checksums: this is the newest checkpoint now."""
        checkpoint.finish(self._out, state, sums)
        self.version = state.version

    def patience(self) -> AbstractContextManager[None]:
        """Around a schedule that asks `leave_if_asked` after each commit."""
        return self._stopping.patience() if self._config.every else nullcontext()

    def leave_if_asked(self) -> None:
        """Raise SystemExit if this process was asked to stop."""
        if self._stopping.requested:
            self._stopping.leave()
