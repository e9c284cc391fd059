import torch

from async_rollout.policy import masks

REAL = torch.tensor([[False, False, True, True], [True, True, False, True], [False] * 4])


def test_a_query_sees_real_keys_up_to_itself_and_always_its_own() -> None:
    visible = masks.causal(REAL)
    assert visible.shape == (3, 1, 4, 4)
    for row in range(3):
        for query in range(4):
            expected = [(key <= query and bool(REAL[row, key])) or key == query for key in range(4)]
            assert visible[row, 0, query].tolist() == expected


def test_positions_count_real_tokens_only() -> None:
    assert masks.positions(REAL).tolist() == [[0, 0, 0, 1], [0, 1, 1, 2], [0, 0, 0, 0]]


def test_the_newest_token_sees_itself_and_as_many_keys_as_are_cached() -> None:
    visible = masks.newest(torch.tensor([0, 2, 3]), 4)[:, 0, 0]
    assert visible.tolist() == [[False] * 3 + [True], [False] + [True] * 3, [True] * 4]
