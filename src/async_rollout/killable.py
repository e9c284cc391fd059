"""A function in a process of its own, killed when a call takes too long.

For code that is trusted but may compute for ever on some input, or use up memory. The
process is forked, so what the caller has imported is there at once; after a kill the next
call forks another. At most one call runs at a time. Works in any thread and uses no signals.
"""

import faulthandler
import os
import resource
import signal
from collections.abc import Callable
from typing import Any

from async_rollout.channels import Channel, ChannelClosed, pair
from async_rollout.lifeline import die_with

_MB = 1 << 20


class Overrun(Exception):
    """The call took too long; its process has been killed."""


class Crashed(Exception):
    """The process ended inside of the call, by `signal_number` (0: it left by itself)."""

    def __init__(self, signal_number: int):
        super().__init__(f"the process ended during the call (signal {signal_number})")
        self.signal_number = signal_number


class Killable:
    """Calls `function` elsewhere; its argument and its value travel by pickle.

    What the function raises is raised here as RuntimeError with its text. `memory_mb` is what
    a process may use beyond what it was forked with; `prepare` is called in it first.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        memory_mb: int = 512,
        prepare: Callable[[], None] | None = None,
    ):
        self._function = function
        self._prepare = prepare
        self._memory = memory_mb * _MB
        self._pid = 0
        self._channel: Channel | None = None

    def __call__(self, argument: Any, timeout: float) -> Any:
        """The function's value. Raises Overrun after `timeout` seconds, Crashed if the process dies."""
        if self._channel is None:
            self._fork()
        try:
            self._channel.send(argument)
            answers = self._channel.wait(timeout)
        except ChannelClosed:
            raise Crashed(self._reap()) from None
        if not answers:
            self.close()
            raise Overrun(f"more than {timeout:g} s")
        error, value = answers[0]
        if error is not None:
            raise RuntimeError(error)
        return value

    def close(self) -> None:
        """Kill the process and reap it."""
        if self._channel is not None:
            os.kill(self._pid, signal.SIGKILL)
            self._reap()

    def _fork(self) -> None:
        ours, theirs = pair()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                die_with(parent)
                ours.close()
                self._serve(theirs)
            finally:
                os._exit(0)
        theirs.close()
        self._channel = ours

    def _serve(self, channel: Channel) -> None:
        faulthandler.disable()  # the caller's: a crash here is reported by the caller
        with open("/proc/self/statm", encoding="ascii") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + self._memory,) * 2)
        if self._prepare is not None:
            self._prepare()
        while True:
            for argument in channel.wait():
                try:
                    answer = (None, self._function(argument))
                except Exception as error:
                    answer = (f"{type(error).__name__}: {error}"[:500], None)
                channel.send(answer)
                channel.drain()

    def _reap(self) -> int:
        """Wait for the process's end; returns the signal that ended it."""
        _, status = os.waitpid(self._pid, 0)
        self._channel.close()
        self._channel = None
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
