"""Keys and values of all slots, right-aligned to one shared column.

A sample with n cached tokens occupies columns [head - n, head) of its row; everything
further left is a hole, and every row appends at `head`. So a row's mask follows from its
length, attention only ever looks at the columns of the longest running sample, and holes
cost memory, not time. Storage is allocated ahead of the head; when the head reaches its
end, the samples move left over the holes, and storage grows if that gives too little room.
Unused storage is zero or stale but finite: masked keys must never be NaN.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from transformers.cache_utils import Cache

BLOCK = 64  # columns


class SlotCache(Cache):
    """The cache that a model's layers write to, one row a slot."""

    def __init__(self, slots: int) -> None:
        super().__init__(layers=[])
        self.slots = slots
        self.capacity = 0  # columns of storage
        self.head = 0  # where the next token of every row goes
        self.window = 0  # columns left of the head that hold what queries may see
        self._prefill: tuple[torch.Tensor, torch.Tensor] | None = None
        self._append: tuple[torch.Tensor, torch.Tensor, torch.Tensor, int] | None = None
        self._keys: list[torch.Tensor] = []  # a layer each, (slots, heads, capacity, head size)
        self._values: list[torch.Tensor] = []

    def reserve(self, past: int, kept: int) -> None:
        """Make room for `past` columns left of the head and one at it; the last `kept` keep their content."""
        self.window = past
        if past <= self.head < self.capacity:
            return
        needed = past + max(BLOCK, past // 4)  # so that moving costs a few columns a step at most
        capacity = max(self.capacity, -(-needed // BLOCK) * BLOCK)
        for store in (self._keys, self._values):
            store[:] = [self._moved(tensor, capacity, past, kept) for tensor in store]
        self.capacity, self.head = capacity, past

    def advance(self) -> None:
        """The forward that appended one token to every row is over."""
        self.head += 1
        self.window += 1

    def move_rows(self, source: np.ndarray, target: np.ndarray) -> None:
        """Copy the visible columns of rows `source` to rows `target`."""
        if not source.size:
            return
        columns = slice(self.head - self.window, self.head)
        for tensor in (*self._keys, *self._values):
            tensor[target, :, columns] = tensor[source, :, columns]

    @contextmanager
    def prefilling(self, rows: torch.Tensor, source: torch.Tensor) -> Iterator[None]:
        """Within, a forward fills slot rows[i] from its batch row source[i], right-aligned to the head."""
        self._prefill = (rows, source)
        try:
            yield
        finally:
            self._prefill = None

    @contextmanager
    def appending(self, rows: torch.Tensor, real: torch.Tensor) -> Iterator[None]:
        """Within, a forward adds several tokens to slot rows[i]: those that are `real` (n, T), on the right.

        What the rows hold moves left to make room, which `reserve` has made; other rows stay.
        """
        columns = torch.arange(self.window, device=rows.device)
        missing = self.window - real.shape[1]
        from_forward = torch.nn.functional.pad(real, (missing, 0))
        source = (columns + real.sum(dim=1, keepdim=True)).clamp_(max=self.window - 1)
        self._append = (rows, source, from_forward, real.shape[1])
        try:
            yield
        finally:
            self._append = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args, **kwargs
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Called by each attention layer: store (n, heads, T, size), return what its queries may see."""
        if layer_idx == len(self._keys):
            self._keys.append(self._storage(key_states))
            self._values.append(self._storage(value_states))
        keys, values = self._keys[layer_idx], self._values[layer_idx]
        if self._prefill is not None:
            rows, source = self._prefill
            columns = slice(self.head - key_states.shape[2], self.head)
            keys[rows, :, columns] = key_states[source]
            values[rows, :, columns] = value_states[source]
            return key_states, value_states
        if self._append is not None:
            return self._appended(keys, key_states), self._appended(values, value_states)
        n, columns = key_states.shape[0], slice(self.head - self.window, self.head + 1)
        keys[:n, :, self.head] = key_states[:, :, 0]
        values[:n, :, self.head] = value_states[:, :, 0]
        return keys[:n, :, columns], values[:n, :, columns]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Columns before the tokens of this forward (models that are given positions ignore it)."""
        if self._append is not None:
            return self.window - self._append[-1]
        return 0 if self._prefill is not None else self.window

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0) -> tuple[int, int]:
        """(number of keys, offset of the first) for models that look before they take our mask."""
        return self.get_seq_length(layer_idx) + query_length, 0

    def _appended(self, store: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Move the rows' columns left, put the new ones at the end, return all (n, heads, window, size)."""
        rows, source, from_forward, _ = self._append
        columns = slice(self.head - self.window, self.head)
        old = store[rows, :, columns]
        moved = old.gather(2, source[:, None, :, None].expand_as(old))
        new = torch.nn.functional.pad(states, (0, 0, self.window - states.shape[2], 0))
        store[rows, :, columns] = result = torch.where(from_forward[:, None, :, None], new, moved)
        return result

    def _storage(self, states: torch.Tensor) -> torch.Tensor:
        _, heads, _, size = states.shape
        return states.new_zeros(self.slots, heads, self.capacity, size)

    def _moved(self, old: torch.Tensor, capacity: int, past: int, kept: int) -> torch.Tensor:
        content = old[:, :, self.head - kept : self.head]
        if capacity == self.capacity:
            new, content = old, content.clone()  # source and target may overlap
        else:
            new = old.new_zeros(*old.shape[:2], capacity, old.shape[3])
        new[:, :, past - kept : past] = content
        return new
