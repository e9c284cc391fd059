"""The weight store: where the trainer puts new weights and rollout workers find them.

Whatever the transport, a reader only ever gets whole versions, the parameter service alone
makes a version visible, at once for all, and nothing that is not finite becomes visible.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from async_rollout.config.run import RunConfig
from async_rollout.runtime.disk_weights import DiskWeights
from async_rollout.runtime.layout import Buffer, WeightLayout
from async_rollout.runtime.shared_weights import SharedWeights

DIRECTORY = "weights"


class WeightStore(Protocol):
    """One run's. Can be handed to a process that is being spawned."""

    @property
    def version(self) -> int:
        """Policy version that readers see; cheap enough to ask before every forward."""

    def allocate(self, layout: WeightLayout) -> None:
        """Trainer, once, before its first commit: make room."""

    def grant(self) -> int:
        """Parameter service: the place that the next version is to be written to."""

    def write(self, place: int, layout: WeightLayout, copy: Callable[[Buffer], None]) -> None:
        """Trainer: fill the granted place; `copy(buffer)` writes the bytes."""

    def non_finite(self, place: int, layout: WeightLayout) -> str | None:
        """Parameter service: the first parameter written there that holds NaN or infinity, else None."""

    def flip(self, place: int, version: int) -> None:
        """Parameter service: all readers see what was written there, as `version`, from now on."""

    def read(self, reader: int, layout: WeightLayout, copy: Callable[[Buffer], None]) -> int:
        """Call `copy(buffer)` until it saw a whole version; returns that version."""

    def forget(self, reader: int) -> None:
        """The reader starts anew: what an earlier one of its number held is free."""

    def close(self) -> None:
        """Whoever opened it, at the end: nothing is left."""


def open_weights(config: RunConfig, out: Path, version: int) -> WeightStore:
    """The store that `rollout.weights` names; `version` is the one before its first publication."""
    if config.rollout.weights == "disk":
        return DiskWeights.create(out / DIRECTORY, version)
    return SharedWeights(version)
