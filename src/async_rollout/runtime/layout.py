"""How a policy's parameters lie in one flat buffer of bytes."""

import math
from dataclasses import dataclass

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
