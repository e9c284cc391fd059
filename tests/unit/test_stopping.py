"""SIGTERM and SIGUSR1: a run under way gets its grace time, everything else leaves at once."""

import os
import signal
import threading
import time

import pytest

from async_rollout.config.checkpoint import CheckpointConfig
from async_rollout.runtime.keeper import Keeper
from async_rollout.runtime.stopping import Stopping


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_outside_a_run_it_leaves_at_once(number):
    before = signal.getsignal(number)
    with Stopping(60).heeded(), pytest.raises(SystemExit) as left:
        os.kill(os.getpid(), number)
    assert left.value.code == 143
    assert signal.getsignal(number) == before


def test_a_run_under_way_is_asked_first():
    stopping = Stopping(60)
    with stopping.heeded(), stopping.patience():
        os.kill(os.getpid(), signal.SIGUSR1)
        assert stopping.requested
        with pytest.raises(SystemExit):
            stopping.leave()


def test_a_signal_that_is_sent_again_changes_nothing():
    """Slurm sends SIGTERM twice at a time limit; the step under way is still kept."""
    stopping = Stopping(60)
    with stopping.heeded(), stopping.patience():
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGUSR1):
            os.kill(os.getpid(), number)
        assert stopping.requested


def test_when_the_grace_time_is_over_it_leaves():
    stopping, begun, before = Stopping(0.2), time.monotonic(), set(threading.enumerate())
    with stopping.heeded(), stopping.patience():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(SystemExit):
            time.sleep(20)
    assert set(threading.enumerate()) <= before, "no timer is left to fire"
    assert 0.15 < time.monotonic() - begun < 10


def test_what_is_kept_and_when(tmp_path):
    """Every n-th version, and one more when the run is asked to stop; each once."""
    stopping = Stopping(60)
    keeper = Keeper(tmp_path, CheckpointConfig(every=3), stopping)
    assert [v for v in range(10) if keeper.wanted(v)] == [3, 6, 9]
    keeper.version = 6
    assert not keeper.wanted(6)
    stopping.requested = True
    assert keeper.wanted(7)
    for every in (0, None):
        off = Keeper(tmp_path, CheckpointConfig(every=every), stopping)
        assert not any(off.wanted(v) for v in range(10))


def test_without_checkpoints_there_is_no_patience(tmp_path):
    stopping = Stopping(60)
    keeper = Keeper(tmp_path, CheckpointConfig(every=0), stopping)
    with stopping.heeded(), keeper.patience(), pytest.raises(SystemExit):
        os.kill(os.getpid(), signal.SIGTERM)
