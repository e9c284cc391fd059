"""The weight store: two shared buffers, so that one can be read while the other is written.

A reader only ever gets whole versions: it copies the front buffer out and believes the copy
if the buffer's sequence word was even and did not move meanwhile. Nothing is pickled.
"""

import mmap
import time
from collections.abc import Callable

import numpy as np

from async_rollout.runtime.clock import BUFFERS, Clock, SharedMemory
from async_rollout.runtime.layout import Entry, WeightLayout

_TRIES_WITHOUT_LEASE = 3
_PAUSE = 0.0005  # seconds between two tries


class WeightStore:
    """The buffers and their clock. Can be handed to a process that is being spawned."""

    def __init__(self, version: int = 0) -> None:
        self.clock = Clock(version)
        self._memories = [SharedMemory(f"weights{i}", 0) for i in range(BUFFERS)]
        self._maps: list[mmap.mmap] = []

    def __getstate__(self) -> tuple[Clock, list[SharedMemory]]:
        return self.clock, self._memories

    def __setstate__(self, state: tuple[Clock, list[SharedMemory]]) -> None:
        self.clock, self._memories = state
        self._maps = []

    def allocate(self, layout: WeightLayout) -> None:
        """Trainer, once, before its first commit: give the buffers their size."""
        for memory in self._memories:
            memory.resize(layout.size)

    def buffer(self, index: int, layout: WeightLayout) -> mmap.mmap:
        """The bytes of one buffer."""
        if not self._maps:
            self._maps = [memory.map(layout.size) for memory in self._memories]
        return self._maps[index]

    def read(self, reader: int, layout: WeightLayout, copy: Callable[[mmap.mmap], None]) -> int:
        """Call `copy(buffer)` until it saw a whole version; returns that version.

        After three torn copies the reader takes a lease, which the parameter service
        respects before it grants the buffer again.
        """
        for attempt in range(1_000_000):
            front = self.clock.front
            if attempt >= _TRIES_WITHOUT_LEASE:
                self.clock.lease(reader, front)
            try:
                sequence = self.clock.sequence(front)
                if sequence % 2 == 0:
                    version = self.clock.held(front)
                    copy(self.buffer(front, layout))
                    if self.clock.sequence(front) == sequence:
                        return version
            finally:
                if attempt >= _TRIES_WITHOUT_LEASE:
                    self.clock.lease(reader, None)
            time.sleep(_PAUSE)
        raise RuntimeError("the weight store never held still: is its writer gone?")

    def close(self) -> None:
        """Give the descriptors back."""
        self.clock.close()
        for memory in self._memories:
            memory.close()


def first_non_finite(buffer: mmap.mmap, layout: WeightLayout) -> str | None:
    """Name of the first parameter in the buffer that holds NaN or infinity, else None."""
    return next((e.name for e in layout.entries if not _finite(buffer, e)), None)


def _finite(buffer: mmap.mmap, entry: Entry) -> bool:
    if entry.dtype == "bfloat16":  # numpy has no such type: all exponent bits set means not finite
        raw = np.frombuffer(buffer, np.uint16, entry.items, entry.offset)
        return not bool(((raw & 0x7F80) == 0x7F80).any())
    values = np.frombuffer(buffer, entry.dtype, entry.items, entry.offset)
    if entry.dtype == "float32":  # a sum of squares takes one pass and is finite only if all values are
        with np.errstate(over="ignore"):  # which is looked at again below
            if np.isfinite(np.dot(values, values)):
                return True
    return bool(np.isfinite(values).all())
