"""Weights in shared memory: two buffers, so that one can be read while the other is written.

A reader only ever gets whole versions: it copies the front buffer out and believes the copy
if the buffer's sequence word was even and did not move meanwhile. Nothing is pickled.
"""

import mmap
import time
from collections.abc import Callable

from async_rollout.runtime.clock import BUFFERS, Clock, SharedMemory
from async_rollout.runtime.layout import WeightLayout, first_non_finite

LEASE_PATIENCE_SEC = 5.0
_TRIES_WITHOUT_LEASE = 3
_PAUSE = 0.0005  # seconds between two tries


class SharedWeights:
    """WeightStore (see weights.py): the buffers and their clock."""

    def __init__(self, version: int = 0) -> None:
        self.clock = Clock(version)
        self._memories = [SharedMemory(f"weights{i}", 0) for i in range(BUFFERS)]
        self._maps: list[mmap.mmap] = []

    def __getstate__(self) -> tuple[Clock, list[SharedMemory]]:
        return self.clock, self._memories

    def __setstate__(self, state: tuple[Clock, list[SharedMemory]]) -> None:
        self.clock, self._memories = state
        self._maps = []

    @property
    def version(self) -> int:
        """Policy version that readers see."""
        return self.clock.version

    def allocate(self, layout: WeightLayout) -> None:
        """Trainer, once, before its first commit: give the buffers their size."""
        for memory in self._memories:
            memory.resize(layout.size)

    def buffer(self, index: int, layout: WeightLayout) -> mmap.mmap:
        """The bytes of one buffer."""
        if not self._maps:
            self._maps = [memory.map(layout.size) for memory in self._memories]
        return self._maps[index]

    def write(self, place: int, layout: WeightLayout, copy: Callable[[mmap.mmap], None]) -> None:
        """Call `copy(buffer)` on the buffer that was granted."""
        copy(self.buffer(place, layout))

    def grant(self) -> int:
        """The buffer that is not the front, once no reader holds it.

        A reader that died with a lease would hold it for ever: after LEASE_PATIENCE_SEC the
        buffer is granted all the same, and a live reader notices and copies again.
        """
        back = self.clock.back
        deadline = time.monotonic() + LEASE_PATIENCE_SEC
        while self.clock.leased(back) and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        self.clock.open_buffer(back)
        return back

    def non_finite(self, place: int, layout: WeightLayout) -> str | None:
        """Name of the first parameter in the granted buffer that holds NaN or infinity."""
        return first_non_finite(self.buffer(place, layout), layout)

    def flip(self, place: int, version: int) -> None:
        """The granted buffer is the front from now on."""
        self.clock.close_buffer(place, version)

    def forget(self, reader: int) -> None:
        """A reader that was killed may have left its lease."""
        self.clock.lease(reader, None)

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
