import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.tasks.order import TaskOrder

sizes = st.integers(1, 40)
seeds = st.integers(0, 2**32)


@given(tasks=sizes, seed=seeds, epoch=st.integers(0, 5))
def test_every_epoch_is_a_permutation(tasks, seed, epoch):
    order = TaskOrder(tasks, seed)
    drawn = [order.index(epoch * tasks + n) for n in range(tasks)]
    assert {e for e, _ in drawn} == {epoch}
    assert sorted(task for _, task in drawn) == list(range(tasks))


@given(tasks=sizes, seed=seeds, asked=st.lists(st.integers(0, 200), max_size=20))
def test_an_index_depends_on_nothing_but_its_number(tasks, seed, asked):
    order = TaskOrder(tasks, seed)
    assert [order.index(n) for n in asked] == [TaskOrder(tasks, seed).index(n) for n in asked]


def test_a_batch_may_span_two_epochs():
    order = TaskOrder(tasks=10, seed=0)
    assert [order.index(n)[0] for n in range(8, 12)] == [0, 0, 1, 1]


def test_epochs_and_seeds_differ():
    order = TaskOrder(tasks=30, seed=0)
    first = [order.index(n)[1] for n in range(30)]
    assert first != [order.index(n)[1] for n in range(30, 60)]
    assert first != [TaskOrder(30, 1).index(n)[1] for n in range(30)]


def test_no_tasks_is_an_error():
    with pytest.raises(ValueError, match="at least one task"):
        TaskOrder(0, seed=0)
