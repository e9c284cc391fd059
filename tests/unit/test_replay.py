"""Groups under way: what is expected, when a group is complete, and that it leaves once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.runtime.replay import Replay
from async_rollout.types import Sample, SampleId, Trajectory, Verdict


def sample(group: int, index: int, *, attempt: int = 0, versions: tuple[int, ...] = (0, 0)) -> Sample:
    n = len(versions)
    trajectory = Trajectory(
        SampleId(group, index, attempt),
        np.zeros(1, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.float32),
        np.array(versions, np.int32),
        np.ones(n, bool),
        "stop",
    )
    return Sample(trajectory, f"{group}-{index}", Verdict(1.0, "pass"))


@given(st.permutations([(g, i) for g in range(3) for i in range(3)]))
def test_groups_are_whole_and_in_order_whatever_the_order_of_arrival(arrivals):
    replay = Replay()
    for number in range(3):
        replay.open(number, f"task-{number}", 3, version=0)
    for group, index in arrivals:
        assert replay.expects(SampleId(group, index))
        replay.add(sample(group, index))
        assert not replay.expects(SampleId(group, index)), "a second copy is not wanted"
    assert (replay.running, replay.waiting) == (0, 3)
    for number, group in enumerate(replay.take([0, 1, 2])):
        assert (group.number, group.task_id) == (number, f"task-{number}")
        assert [s.text for s in group.samples] == [f"{number}-{i}" for i in range(3)]
    assert replay.waiting == 0


def test_what_is_not_expected():
    """Another attempt, an unknown sample, a group never submitted, complete or rejected."""
    replay = Replay()
    replay.open(0, "a", 2, version=0)
    replay.open(1, "b", 1, version=0)
    replay.open(2, "c", 2, version=0)
    replay.add(sample(1, 0))
    replay.reject(2)
    assert replay.expects(SampleId(0, 1))
    for key in (SampleId(0, 1, 1), SampleId(0, 2), SampleId(9, 0), SampleId(1, 0), SampleId(2, 0)):
        assert not replay.expects(key)


def test_a_rejected_group_gives_back_what_it_has_and_is_gone():
    replay = Replay()
    replay.open(0, "a", 3, version=0)
    replay.add(sample(0, 2))
    assert [s.text for s in replay.reject(0)] == ["0-2"]
    assert (replay.running, replay.waiting) == (0, 0)
    with pytest.raises(KeyError):
        replay.reject(0)


def test_a_group_is_taken_once():
    replay = Replay()
    replay.open(0, "a", 1, version=0)
    replay.add(sample(0, 0))
    replay.take([0])
    with pytest.raises(KeyError):
        replay.take([0])


def test_a_running_group_is_as_old_as_its_start():
    """As soon as that is known; the first report holds, and one of a group that is gone is no error."""
    replay = Replay()
    replay.open(0, "a", 2, version=1)
    assert (replay.under_way(), replay.begun()) == ([(1, 0)], [])
    replay.start(0, 3)
    replay.start(0, 4)
    replay.start(9, 4)
    assert replay.under_way() == replay.begun() == [(3, 0)]


def test_ages_are_of_the_oldest_token():
    """Of a complete group's oldest sample; of a running one, its version of admission."""
    replay = Replay()
    replay.open(4, "a", 2, version=1)
    replay.open(5, "b", 2, version=3)
    replay.add(sample(4, 0, versions=(3, 4)))
    replay.add(sample(4, 1, versions=(2, 4)))
    replay.add(sample(5, 1, versions=(4,)))
    assert replay.complete() == [(2, 4)]
    assert replay.under_way() == [(3, 5)]
