"""Every row is used once, sizes are even, budgets hold, padding is where it belongs."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.config.objective import AdvantageConfig
from async_rollout.learner.batching import balanced, collate, micro_batches, pack, split
from async_rollout.learner.rows import Row, make_batch
from async_rollout.types import SampleId
from learning import PAD, STOP, groups, trajectory


@given(st.integers(1, 200), st.integers(1, 32), st.integers(0, 10), st.integers(0, 1000))
def test_minibatches_hold_every_row_once_in_even_sizes(count, minibatches, seed, version):
    parts = split(count, minibatches, seed, version)
    assert sorted(np.concatenate(parts).tolist()) == list(range(count))
    sizes = [len(part) for part in parts]
    assert len(parts) == min(minibatches, count)
    assert max(sizes) - min(sizes) <= 1


def test_minibatches_follow_seed_and_version():
    def order(seed: int, version: int) -> list[int]:
        return np.concatenate(split(100, 4, seed, version)).tolist()

    assert order(0, 7) == order(0, 7)
    assert len({tuple(order(s, v)) for s in range(3) for v in range(3)}) == 9


def rows_of(lengths: list[tuple[int, int]]) -> list[Row]:
    rng = np.random.default_rng(0)
    rows = []
    for i, (prompt, response) in enumerate(lengths):
        t = trajectory(rng, SampleId(0, i), length=response, prompt_length=prompt)
        advantages = np.full(response, i + 1, np.float32)
        rows.append(Row(t, t.action_mask, advantages, np.full(response, i, np.int64)))
    return rows


LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 60)), min_size=1, max_size=40)


@given(LENGTHS, st.integers(16, 400))
def test_microbatches_hold_every_row_once_within_the_budget(lengths, budget):
    rows = rows_of(lengths)
    packs = pack(rows, budget)
    assert sorted(i for part in packs for i in part) == list(range(len(rows)))
    for part in packs:
        micro = collate([rows[i] for i in part], PAD)
        size = micro.scoring.prompt_ids.size + micro.scoring.response_ids.size
        assert size <= budget or len(part) == 1
    longest = [max(lengths[i][1] for i in part) for part in packs]
    assert longest == sorted(longest)


@given(LENGTHS)
def test_padding_keeps_every_value_in_its_place(lengths):
    rows = rows_of(lengths)
    micro = collate(rows, PAD)
    for i, (row, (prompt, response)) in enumerate(zip(rows, lengths, strict=True)):
        t, s = row.trajectory, micro.scoring
        assert (s.prompt_ids[i][s.prompt_mask[i]] == t.prompt_ids).all()
        assert (s.response_ids[i][s.response_mask[i]] == t.response_ids).all()
        assert s.prompt_mask[i, -1]
        assert s.prompt_mask[i].sum() == prompt
        assert s.response_mask[i].tolist() == [j < response for j in range(s.response_mask.shape[1])]
        for padded, original in (
            (micro.mask, row.mask),
            (micro.behavior, t.behavior_logprobs),
            (micro.advantages, row.advantages),
            (micro.staleness, row.staleness),
        ):
            assert (padded[i, :response] == original).all()
            assert not padded[i, response:].any()
        assert (s.prompt_ids[i][~s.prompt_mask[i]] == PAD).all()
    assert micro.proximal is None


def test_masks_come_from_lengths_not_from_ids():
    """A stop token that is also the padding token stays real."""
    rows = rows_of([(3, 2), (3, 5)])
    micro = collate(rows, pad_id=STOP)
    assert micro.scoring.response_ids[0].tolist()[1:] == [STOP] * 4
    assert micro.scoring.response_mask[0].tolist() == [True, True, False, False, False]
    assert micro.mask[0].tolist() == [True, True, False, False, False]


def test_advantages_are_computed_once_for_the_whole_batch():
    batch = make_batch(groups(), AdvantageConfig(), version=0, bound=0)
    values = np.array([row.advantages[0] for row in batch.rows]).reshape(2, 4)
    np.testing.assert_allclose(values[0], np.array([-1, 1, -1, 1]) * 0.5 / 0.5001, rtol=1e-6)
    std = np.sqrt(3) / 4
    np.testing.assert_allclose(values[1], np.array([0.75, -0.25, -0.25, -0.25]) / (std + 1e-4), rtol=1e-6)
    assert batch.reward_mean == 3 / 8
    assert batch.zero_variance == 0


@given(LENGTHS, st.integers(1, 8))
def test_each_row_goes_to_one_rank_and_none_has_much_more_than_another(lengths, ranks):
    sizes = [sum(pair) for pair in lengths]
    shares = balanced(sizes, ranks)
    assert len(shares) == ranks
    assert sorted(i for share in shares for i in share) == list(range(len(sizes)))
    loads = [sum(sizes[i] for i in share) for share in shares]
    assert max(loads) - min(loads) <= max(sizes)


@given(LENGTHS, st.integers(16, 400), st.integers(1, 5), st.booleans(), st.sets(st.integers(0, 39)))
def test_ranks_share_the_rows_in_the_loss_and_shards_run_in_step(lengths, budget, ranks, sharded, masked):
    rows = rows_of(lengths)
    rows = [replace(r, mask=r.mask & False) if i in masked else r for i, r in enumerate(rows)]
    found = []
    for rank in range(ranks):
        place = SimpleNamespace(rank=rank, size=ranks, sharded=sharded)
        found.append(list(micro_batches(rows, budget, PAD, place)))
    indices = sorted(i for own in found for part, _ in own for i in part)
    assert indices == [i for i, row in enumerate(rows) if row.tokens]
    assert all(bool(part) == bool(micro.mask.any()) for own in found for part, micro in own)
    if sharded:
        assert len({len(own) for own in found}) == 1
    else:
        assert all(part for own in found for part, _ in own)
