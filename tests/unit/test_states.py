"""A cell says what it is doing and why it failed, in words for programs."""

import errno
import os

import pytest

from async_rollout.algorithms.ratio import NonFiniteError
from async_rollout.records.files import read_jsonl
from async_rollout.records.states import StateLog
from async_rollout.rewards.judge import RewardError
from async_rollout.runtime.failure import last_line, reason_of
from async_rollout.runtime.supervisor import SetupTimeout, WorkerDied


class OutOfMemoryError(RuntimeError):
    """torch's has this name."""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OutOfMemoryError("CUDA out of memory"), "out_of_memory"),
        (MemoryError(), "out_of_memory"),
        (OSError(errno.ENOMEM, "no"), "out_of_memory"),
        (OSError(errno.ENOSPC, "full"), "disk_full"),
        (NonFiniteError("loss"), "non_finite"),
        (RewardError("judges"), "reward"),
        (SetupTimeout("late"), "setup_timeout"),
        (SystemExit(143), "stopped"),
        (KeyboardInterrupt(), "stopped"),
        (WorkerDied("rollout-0 killed by signal 9", "killed"), "killed"),
        (WorkerDied("trainer-0 failed", "non_finite"), "non_finite"),
        (ValueError("out of memory"), "error"),  # words of a message decide nothing
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "killed by hand"), "error"),  # has a `reason` of its own
    ],
)
def test_the_kind_of_an_error_decides_its_reason(error, reason):
    assert reason_of(error) == reason


def test_a_state_is_appended_and_earlier_ones_stay(tmp_path):
    StateLog(tmp_path, 1).enter("failed", "reward", last_line(RewardError("many\nwords, then the last")))
    StateLog(tmp_path, 2).enter("setting up")
    first, second = read_jsonl(tmp_path / "states.jsonl")
    assert (first["state"], first["reason"], first["attempt"]) == ("failed", "reward", 1)
    assert first["detail"] == "RewardError: words, then the last"
    assert (second["state"], second["attempt"], second["pid"]) == ("setting up", 2, os.getpid())
