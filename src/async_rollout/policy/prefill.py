"""Filling the KV cache for whole prefixes or for several tokens of a row at once, a token budget at a time.

Equal prefixes (the samples of one prompt group) are computed once. Prefixes are sorted by
length before they are cut into chunks, so that little of a chunk is padding.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from async_rollout.policy import masks
from async_rollout.policy.forward import Forward
from async_rollout.policy.kv_cache import SlotCache


@dataclass(frozen=True, slots=True)
class Prefix:
    """Token ids, and every row of the cache that wants them."""

    ids: np.ndarray  # (T,), T >= 1
    rows: list[int]


@dataclass(frozen=True, slots=True)
class Addition:
    """Token ids that continue one row of the cache, and the row's length with them."""

    ids: np.ndarray  # (T,), T >= 1
    row: int
    length: int


def distinct(prefixes: Iterable[tuple[int, np.ndarray]]) -> list[Prefix]:
    """Merge (row, ids) pairs of equal ids; empty ones need no cache and are left out."""
    merged: dict[bytes, Prefix] = {}
    for row, ids in prefixes:
        if len(ids):
            merged.setdefault(ids.tobytes(), Prefix(ids, [])).rows.append(row)
    return list(merged.values())


P = TypeVar("P", Prefix, Addition)


def chunks(prefixes: Sequence[P], budget: int) -> Iterator[list[P]]:
    """Longest first, each chunk at most `budget` tokens with its padding (or a single prefix)."""
    ordered = sorted(prefixes, key=lambda prefix: -len(prefix.ids))
    while ordered:
        n = max(1, budget // len(ordered[0].ids))
        yield ordered[:n]
        ordered = ordered[n:]


def left_padded(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Ids (n, T) int64 with 0 as padding on the left, and the mask (n, T) of real tokens."""
    lengths = np.array([len(ids) for ids in rows])
    real = np.arange(lengths.max()) >= (lengths.max() - lengths)[:, None]
    ids = np.zeros(real.shape, dtype=np.int64)
    ids[real] = np.concatenate(rows)
    return ids, real


def append(forward: Forward, cache: SlotCache, additions: Sequence[Addition], budget: int) -> None:
    """Write the keys and values of tokens that rows with a cached past have been given at once."""
    for chunk in chunks(additions, budget):
        ids, real = (torch.from_numpy(a).to(forward.device) for a in left_padded([a.ids for a in chunk]))
        rows, lengths = torch.tensor(
            [[a.row for a in chunk], [a.length for a in chunk]], device=forward.device
        )
        width = ids.shape[1]
        places = (lengths[:, None] - width + torch.arange(width, device=forward.device)).clamp_(min=0)
        with cache.appending(rows, real):
            visible = masks.appended(lengths, real, cache.window)
            forward(ids, places, visible, keep=1, cache=cache)


def prefill(forward: Forward, cache: SlotCache, prefixes: Sequence[Prefix], budget: int) -> None:
    """Write the keys and values of all prefixes, right-aligned to the cache's head."""
    for chunk in chunks(prefixes, budget):
        ids, real = (torch.from_numpy(a).to(forward.device) for a in left_padded([p.ids for p in chunk]))
        rows = torch.tensor([row for p in chunk for row in p.rows], device=forward.device)
        source = torch.tensor([i for i, p in enumerate(chunk) for _ in p.rows], device=forward.device)
        with cache.prefilling(rows, source):
            forward(ids, masks.positions(real), masks.causal(real), keep=1, cache=cache)
