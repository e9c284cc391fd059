"""SIGTERM and SIGUSR1: what a cluster sends before it takes the machine away.

A run under way ends its step, keeps its state and leaves, if that fits its grace time;
anything else leaves at once. Either way the exit code is 143. A signal that is sent again
changes nothing: Slurm does so at a time limit, within a second. Ctrl-C is never delayed.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
EXIT_CODE = 128 + signal.SIGTERM


class Stopping:
    """Whether this process was asked to stop."""

    def __init__(self, grace_sec: float):
        self._grace = grace_sec
        self._patient = False
        self._timer: threading.Timer | None = None
        self._over = False  # the grace time
        self.requested = False

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """The signals are obeyed inside; in the main thread."""
        before = [signal.signal(number, self._asked) for number in SIGNALS]
        try:
            yield
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for number, handler in zip(SIGNALS, before, strict=True):
                signal.signal(number, handler)

    @contextmanager
    def patience(self) -> Iterator[None]:
        """Inside, a signal only sets `requested`; whoever sees it calls `leave` in time."""
        self._patient = True
        try:
            yield
        finally:
            self._patient = False

    def leave(self) -> None:
        """Exit through all clean-up."""
        raise SystemExit(EXIT_CODE)

    def _asked(self, signum: int, frame: object) -> None:
        if self._over or not self._patient:
            self.leave()
        if not self.requested:
            self.requested = True
            self._timer = threading.Timer(self._grace, self._lose_patience)
            self._timer.daemon = True
            self._timer.start()

    def _lose_patience(self) -> None:
        self._over = True
        os.kill(os.getpid(), signal.SIGTERM)  # so that the main thread leaves, whatever it waits for
