"""How rows are split into minibatches, and packed into padded micro-batches.

Always: every row is in exactly one minibatch and, there, in exactly one micro-batch of one rank;
sizes of minibatches differ by at most one, whatever the number of ranks; a micro-batch stays within
its token budget, padding included, unless a single row exceeds it. Masks come from lengths, never
from ids, so a stop token that equals the padding token stays in the loss.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from async_rollout.learner.ranks import ALONE, Alone
from async_rollout.learner.rows import Row
from async_rollout.policy.interface import ScoringBatch


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """n rows padded to one width L; per-token arrays hold 0 on padding."""

    scoring: ScoringBatch
    mask: np.ndarray  # (n, L) bool, tokens in the loss
    behavior: np.ndarray  # (n, L) float32
    advantages: np.ndarray  # (n, L) float32
    staleness: np.ndarray  # (n, L) int64
    proximal: np.ndarray | None  # (n, L) float32
    initial: np.ndarray | None  # (n, L) float32
    values: np.ndarray | None  # (n, L) float32
    returns: np.ndarray | None  # (n, L) float32


def split(count: int, minibatches: int, seed: int, version: int, *stream: int) -> list[np.ndarray]:
    """Indices of `count` rows in M parts, by a permutation of (seed, version, stream); no part is empty."""
    order = np.random.default_rng([seed, version, *stream]).permutation(count)
    return [part for part in np.array_split(order, minibatches) if len(part)]


def pack(rows: Sequence[Row], budget: int) -> list[list[int]]:
    """Indices of rows, sorted by length and cut so that rows × padded width <= budget."""
    sizes = [(len(r.trajectory.response_ids), len(r.trajectory.prompt_ids)) for r in rows]
    packs: list[list[int]] = []
    prompt = response = 0
    for index in sorted(range(len(rows)), key=sizes.__getitem__):
        prompt, response = max(prompt, sizes[index][1]), max(response, sizes[index][0])
        if packs and (len(packs[-1]) + 1) * (prompt + response) <= budget:
            packs[-1].append(index)
        else:
            packs.append([index])
            response, prompt = sizes[index]
    return packs


def balanced(sizes: Sequence[int], ranks: int) -> list[list[int]]:
    """Indices for each rank, ascending: the largest first, each to whom has least so far."""
    if ranks == 1:
        return [list(range(len(sizes)))]
    loads = [0] * ranks
    shares: list[list[int]] = [[] for _ in range(ranks)]
    for index in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        rank = loads.index(min(loads))
        loads[rank] += sizes[index]
        shares[rank].append(index)
    return [sorted(share) for share in shares]


def micro_batches(
    rows: Sequence[Row], budget: int, pad_id: int, ranks: Alone = ALONE
) -> Iterator[tuple[list[int], MicroBatch]]:
    """(indices, padded rows) of this rank's share, by rising length; perhaps none.

    Rows without a token in the loss are left out. Sharded ranks, which must run as many forwards
    as each other, get micro-batches of no index and no token in the loss at the end.
    """
    kept = [i for i, row in enumerate(rows) if row.tokens]
    sizes = [len(rows[i].trajectory.prompt_ids) + len(rows[i].trajectory.response_ids) for i in kept]
    shares = [[kept[i] for i in share] for share in balanced(sizes, ranks.size)]
    mine = _packed(rows, shares[ranks.rank], budget)
    for indices in mine:
        yield indices, collate([rows[i] for i in indices], pad_id)
    if ranks.sharded:
        most = max(len(_packed(rows, share, budget)) for share in shares)
        for _ in range(most - len(mine)):
            row = rows[kept[0]]
            yield [], collate([replace(row, mask=np.zeros_like(row.mask))], pad_id)


def _packed(rows: Sequence[Row], share: Sequence[int], budget: int) -> list[list[int]]:
    return [[share[i] for i in part] for part in pack([rows[i] for i in share], budget)]


def collate(rows: Sequence[Row], pad_id: int) -> MicroBatch:
    """Pad rows to one micro-batch: prompts on the left, responses on the right."""
    trajectories = [row.trajectory for row in rows]
    prompts = [t.prompt_ids for t in trajectories]
    prompt_mask, mask = _mask(prompts, left=True), _mask([row.mask for row in rows])
    return MicroBatch(
        scoring=ScoringBatch(
            prompt_ids=_pad(prompts, prompt_mask, np.int64, pad_id),
            prompt_mask=prompt_mask,
            response_ids=_pad([t.response_ids for t in trajectories], mask, np.int64, pad_id),
            response_mask=mask,
        ),
        mask=_pad([row.mask for row in rows], mask, bool),
        behavior=_pad([t.behavior_logprobs for t in trajectories], mask, np.float32),
        advantages=_pad([row.advantages for row in rows], mask, np.float32),
        staleness=_pad([row.staleness for row in rows], mask, np.int64),
        proximal=_optional([row.proximal for row in rows], mask),
        initial=_optional([row.initial for row in rows], mask),
        values=_optional([row.values for row in rows], mask),
        returns=_optional([row.returns for row in rows], mask),
    )


def _optional(arrays: list[np.ndarray | None], mask: np.ndarray) -> np.ndarray | None:
    return None if any(a is None for a in arrays) else _pad(arrays, mask, np.float32)


def _mask(arrays: Sequence[np.ndarray], *, left: bool = False) -> np.ndarray:
    """(n, longest) bool, True where a row of an array's length has a value; padding is on one side."""
    lengths = np.array([len(array) for array in arrays])[:, None]
    columns = np.arange(lengths.max())
    return columns >= lengths.max() - lengths if left else columns < lengths


def _pad(arrays: Sequence[np.ndarray], mask: np.ndarray, dtype: type, fill: int = 0) -> np.ndarray:
    """The arrays as rows of one, at the places of the mask."""
    values = np.full(mask.shape, fill, dtype=dtype)
    values[mask] = np.concatenate(arrays)
    return values
