"""The policy-version clock: words in shared memory that every process can read.

Only the parameter service writes the version, the sequence and the held words; each reader
writes its own lease word. The words are aligned 64-bit integers, so that a load or a store
is never torn. The version alone says which buffer is the front, so that one store publishes:
no process can see a new version and the old weights, or the other way round.
"""

import mmap
import os
from multiprocessing.reduction import DupFd

import numpy as np

BUFFERS = 2
_VERSION, _SEQUENCE, _HELD, _LEASES = 0, 1, 1 + BUFFERS, 1 + 2 * BUFFERS
READERS = 250  # lease words: more readers than this do not fit the page
_WORDS = _LEASES + READERS


class SharedMemory:
    """An anonymous memory file: reached by descriptor alone, gone with its last process."""

    def __init__(self, name: str, size: int):
        self._descriptor = os.memfd_create(name)
        os.ftruncate(self._descriptor, size)

    def __getstate__(self) -> object:
        return DupFd(self._descriptor)

    def __setstate__(self, descriptor: object) -> None:
        self._descriptor = descriptor.detach()

    def resize(self, size: int) -> None:
        """Make it `size` bytes; before anyone has mapped it."""
        os.ftruncate(self._descriptor, size)

    def map(self, size: int) -> mmap.mmap:
        """The memory itself, readable and writable."""
        return mmap.mmap(self._descriptor, size)

    def close(self) -> None:
        """Give the descriptor back; what is mapped stays."""
        os.close(self._descriptor)


class Clock:
    """The words. Can be handed to a process that is being spawned.

    A run that goes on begins at the version before its first publication.
    """

    def __init__(self, version: int = 0) -> None:
        self._memory = SharedMemory("clock", _WORDS * 8)
        self._map()
        self._words[_VERSION] = version

    def __getstate__(self) -> SharedMemory:
        return self._memory

    def __setstate__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self._map()

    def _map(self) -> None:
        self._words = np.frombuffer(self._memory.map(_WORDS * 8), dtype=np.int64)

    @property
    def version(self) -> int:
        """Commits so far, as every process sees them."""
        return int(self._words[_VERSION])

    @property
    def front(self) -> int:
        """The buffer that readers copy from: versions take turns."""
        return self.version % BUFFERS

    @property
    def back(self) -> int:
        """The buffer that the next version goes to."""
        return (self.version + 1) % BUFFERS

    def sequence(self, buffer: int) -> int:
        """The buffer's sequence word: odd while it is written."""
        return int(self._words[_SEQUENCE + buffer])

    def held(self, buffer: int) -> int:
        """The policy version that the buffer holds."""
        return int(self._words[_HELD + buffer])

    def open_buffer(self, buffer: int) -> None:
        """Parameter service: the buffer is about to be written."""
        self._words[_SEQUENCE + buffer] += 1

    def close_buffer(self, buffer: int, version: int) -> None:
        """Parameter service: the buffer holds `version`, which all readers see from now on."""
        self._words[_HELD + buffer] = version
        self._words[_SEQUENCE + buffer] += 1
        self._words[_VERSION] = version

    def lease(self, reader: int, buffer: int | None) -> None:
        """Reader: ask that `buffer` be left alone (None: no longer)."""
        self._words[_LEASES + reader] = 0 if buffer is None else buffer + 1

    def leased(self, buffer: int) -> bool:
        """True if any reader asks that `buffer` be left alone."""
        return bool((self._words[_LEASES:] == buffer + 1).any())

    def close(self) -> None:
        """Give the descriptor back."""
        self._memory.close()
