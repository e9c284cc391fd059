"""No process of ours outlives the one that started it, however that one ends."""

import ctypes
import multiprocessing
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Call first in a spawned process: the kernel kills it when its parent ends.

    Linux only, and there tied to the thread that started the process, which must live as long
    as the parent. Elsewhere a process notices that its channel has closed.
    """
    parent = multiprocessing.parent_process()
    die_with(os.getppid() if parent is None else parent.pid)


def die_with(parent: int) -> None:
    """`die_with_parent` for a process that was forked by the process `parent`."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        os._exit(1)  # it ended before the kernel knew
