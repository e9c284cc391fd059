import os
import signal
import threading
import time

import psutil
import pytest

from async_rollout.killable import Crashed, Killable, Overrun


def act(order):
    """As the order says; its process id if it says nothing."""
    match order:
        case "hang":
            time.sleep(3600)
        case "hog":  # more than all it was forked with: what the parent has freed does not serve
            return len(bytearray(psutil.Process().memory_info().vms + (64 << 20)))
        case "raise":
            raise KeyError("lost")
        case int():
            os.kill(os.getpid(), order)
    return os.getpid()


@pytest.fixture
def killable():
    made = Killable(act, memory_mb=32)
    yield made
    made.close()


def test_one_process_serves_many_calls_and_is_not_ours(killable):
    pids = {killable(None, 5) for _ in range(20)}
    assert len(pids) == 1
    assert pids != {os.getpid()}
    killable.close()
    assert not psutil.pid_exists(pids.pop())


def test_a_call_that_takes_too_long_is_killed_and_the_next_one_works(killable):
    first = killable(None, 5)
    begun = time.monotonic()
    with pytest.raises(Overrun):
        killable("hang", 0.2)
    assert time.monotonic() - begun < 1.0
    assert not psutil.pid_exists(first)
    assert killable(None, 5) != first


def test_what_the_function_raises_is_raised_here(killable):
    with pytest.raises(RuntimeError, match="KeyError: 'lost'"):
        killable("raise", 5)
    with pytest.raises(RuntimeError, match="MemoryError"):
        killable("hog", 5)
    assert killable(None, 5)


def test_a_process_that_dies_in_a_call_says_by_which_signal(killable):
    with pytest.raises(Crashed) as error:
        killable(int(signal.SIGSEGV), 5)
    assert error.value.signal_number == signal.SIGSEGV
    assert killable(None, 5)


def test_it_works_in_a_thread(killable):
    found = []

    def call():
        with pytest.raises(Overrun):
            killable("hang", 0.1)
        found.append(killable(None, 5))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    killable.close()
    assert len(found) == 1
