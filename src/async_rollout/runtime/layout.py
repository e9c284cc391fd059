"""How a policy's parameters lie in one flat buffer of bytes, and whether all of them are finite."""

import math
import mmap
from dataclasses import dataclass

import numpy as np

Buffer = mmap.mmap | bytearray
ALIGNMENT = 64  # bytes, a cache line
ITEM_SIZE = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True)
class Entry:
    """One parameter."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    offset: int  # bytes

    @property
    def items(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.items * ITEM_SIZE[self.dtype]


@dataclass(frozen=True, slots=True)
class WeightLayout:
    """All parameters, aligned, in the policy's order; the same in every process of a run."""

    entries: tuple[Entry, ...]
    size: int  # bytes of one buffer


def lay_out(parameters: list[tuple[str, tuple[int, ...], str]]) -> WeightLayout:
    """Layout of parameters given as (name, shape, dtype). Raises ValueError on a dtype it lacks."""
    entries, end = [], 0
    for name, shape, dtype in parameters:
        if dtype not in ITEM_SIZE:
            raise ValueError(f"parameter {name} has dtype {dtype}; published are {', '.join(ITEM_SIZE)}")
        offset = -(-end // ALIGNMENT) * ALIGNMENT
        entry = Entry(name, tuple(shape), dtype, offset)
        entries.append(entry)
        end = offset + entry.size
    return WeightLayout(tuple(entries), max(end, ALIGNMENT))


def first_non_finite(buffer: Buffer, layout: WeightLayout) -> str | None:
    """Name of the first parameter in the buffer that holds NaN or infinity, else None."""
    return next((e.name for e in layout.entries if not _finite(buffer, e)), None)


def _finite(buffer: Buffer, entry: Entry) -> bool:
    if entry.dtype == "bfloat16":  # numpy has no such type: all exponent bits set means not finite
        raw = np.frombuffer(buffer, np.uint16, entry.items, entry.offset)
        return not bool(((raw & 0x7F80) == 0x7F80).any())
    values = np.frombuffer(buffer, entry.dtype, entry.items, entry.offset)
    if entry.dtype == "float32":  # a sum of squares takes one pass and is finite only if all values are
        with np.errstate(over="ignore"):  # which is looked at again below
            if np.isfinite(np.dot(values, values)):
                return True
    return bool(np.isfinite(values).all())
