import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.policy.prefill import Prefix, chunks, distinct, left_padded

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=30)


@given(LENGTHS, st.integers(1, 200))
def test_chunks_cover_everything_within_the_budget(lengths: list[int], budget: int) -> None:
    prefixes = [Prefix(np.zeros(n, dtype=np.int32), [i]) for i, n in enumerate(lengths)]
    cut = list(chunks(prefixes, budget))
    assert sorted(row for chunk in cut for prefix in chunk for row in prefix.rows) == list(
        range(len(lengths))
    )
    for chunk in cut:
        assert len(chunk) == 1 or len(chunk) * max(len(p.ids) for p in chunk) <= budget


@given(LENGTHS)
def test_left_padding_keeps_ids_and_ends_in_one_column(lengths: list[int]) -> None:
    rows = [np.arange(1, n + 1) for n in lengths]
    ids, real = left_padded(rows)
    assert ids.shape == real.shape == (len(rows), max(lengths))
    assert real[:, -1].all()
    for row, padded, mask in zip(rows, ids, real, strict=True):
        assert padded[mask].tolist() == row.tolist()
        assert (padded[~mask] == 0).all()


def test_equal_prefixes_are_merged_and_empty_ones_left_out() -> None:
    a, b = np.array([1, 2], dtype=np.int32), np.array([1, 3], dtype=np.int32)
    merged = distinct([(0, a), (1, b), (2, a.copy()), (3, a[:0])])
    assert [(p.ids.tolist(), p.rows) for p in merged] == [([1, 2], [0, 2]), ([1, 3], [1])]
