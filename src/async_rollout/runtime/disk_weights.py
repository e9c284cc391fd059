"""Weights in a directory, for processes that share only a file system.

A version is a safetensors file that appears whole and never changes; the file VERSION says
which one is the newest. Whoever looks finds one or the other, never a mixture. The last two
versions are kept, so that a reader has the time of a whole update to open the one it chose.
"""

import errno
import json
import mmap
import os
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from async_rollout.records.files import sync_directory, write_text
from async_rollout.runtime.layout import Buffer, WeightLayout, first_non_finite

KEPT = 2
_DTYPES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}  # as safetensors names them
_LENGTH = struct.Struct("<Q")
_STAGED = 0  # the one place that is granted
_PAUSE = 0.0005  # seconds between two tries


class DiskWeights:
    """WeightStore (see weights.py) over a directory."""

    def __init__(self, directory: Path):
        self._directory = directory
        self._file = directory / "VERSION"
        self._scratch: dict[str, bytearray] = {}  # in the layout of memory, by who uses it: perhaps threads

    @classmethod
    def create(cls, directory: Path, version: int) -> Self:
        """An empty one; what an earlier run left in the directory is gone."""
        shutil.rmtree(directory, ignore_errors=True)
        store = cls(directory)
        write_text(store._file, f"{version}\n")
        return store

    def __reduce__(self) -> tuple:
        return type(self), (self._directory,)

    @property
    def version(self) -> int:
        """Policy version that readers see."""
        file = os.open(self._file, os.O_RDONLY)
        try:
            return int(os.read(file, 32))
        finally:
            os.close(file)

    def allocate(self, layout: WeightLayout) -> None:
        """Nothing to do: files grow."""

    def grant(self) -> int:
        """There is one place; no reader looks there."""
        return _STAGED

    def write(self, place: int, layout: WeightLayout, copy: Callable[[Buffer], None]) -> None:
        """Write the staged file, which is on disk when this returns. OSError if it does not fit."""
        buffer = self._buffer("writer", layout)
        copy(buffer)
        partial = self._directory / ".partial"
        with partial.open("wb") as file:
            file.write(_header(layout))
            for entry in layout.entries:
                file.write(memoryview(buffer)[entry.offset : entry.offset + entry.size])
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, self._staged)

    def non_finite(self, place: int, layout: WeightLayout) -> str | None:
        """Name of the first parameter in the staged file that holds NaN or infinity."""
        buffer = self._buffer("service", layout)
        _load(self._staged, layout, buffer)
        return first_non_finite(buffer, layout)

    def flip(self, place: int, version: int) -> None:
        """The staged file gets its name, then VERSION names it; the oldest goes."""
        os.replace(self._staged, self._weights(version))
        sync_directory(self._directory)
        write_text(self._file, f"{version}\n")
        self._weights(version - KEPT).unlink(missing_ok=True)

    def read(self, reader: int, layout: WeightLayout, copy: Callable[[Buffer], None]) -> int:
        """Load the newest version and call `copy(buffer)`; returns that version."""
        buffer = self._buffer(f"reader {reader}", layout)
        for _ in range(1_000_000):
            version = self.version
            try:
                _load(self._weights(version), layout, buffer)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ESTALE):
                    raise
                time.sleep(_PAUSE)  # two newer versions have come meanwhile
                continue
            copy(buffer)
            return version
        raise RuntimeError(f"{self._directory} never held the version that it names: is its writer gone?")

    def forget(self, reader: int) -> None:
        """Readers hold nothing."""

    def close(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def _staged(self) -> Path:
        return self._directory / "staged.safetensors"

    def _weights(self, version: int) -> Path:
        return self._directory / f"v{version}.safetensors"

    def _buffer(self, user: str, layout: WeightLayout) -> bytearray:
        if user not in self._scratch:
            self._scratch[user] = bytearray(layout.size)
        return self._scratch[user]


def _header(layout: WeightLayout) -> bytes:
    """Length and JSON of the safetensors format: the entries' bytes follow each other without gaps."""
    tensors, end = {}, 0
    for entry in layout.entries:
        place = [end, end := end + entry.size]
        tensors[entry.name] = {"dtype": _DTYPES[entry.dtype], "shape": entry.shape, "data_offsets": place}
    text = json.dumps(tensors).encode()
    text += b" " * (-len(text) % _LENGTH.size)
    return _LENGTH.pack(len(text)) + text


def _load(path: Path, layout: WeightLayout, buffer: bytearray) -> None:
    """A file of ours into a buffer. ValueError if it holds other parameters than the layout."""
    header = _header(layout)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[: len(header)] != header:
            raise ValueError(f"{path} holds other parameters than this process has")
        begin = len(header)
        for entry in layout.entries:
            buffer[entry.offset : entry.offset + entry.size] = memoryview(content)[begin : begin + entry.size]
            begin += entry.size
