"""A run's workers as threads of this process: the same bodies, channels and order of events.

A thread cannot be killed: it ends when it is told so, or when a peer hangs up, at the latest
after the forward or the training step that it is in. Whatever ends it, its channels close,
so that its peers see its end as they would see a process's. One that hangs is waited for only
so long, and ends with the process.
"""

import os
import threading
import time
from typing import Any

from async_rollout.channels import Channel, pair
from async_rollout.runtime.process import Seat, serve
from async_rollout.runtime.supervisor import Supervisor, Worker

GIVE_UP_SEC = 60.0  # after a thread's peers have hung up


class Threads(Supervisor):
    """As a supervisor of processes; compute threads are the whole process's and set by the caller."""

    def start(self, role: str, target: str, *, threads: int, **arguments: Any) -> Worker:
        """Run `target` (`module:function`) as `role`; channels among `arguments` are its own from now on."""
        ours, theirs = pair()
        thread = WorkerThread(Seat(role, target, threads, self._out, theirs), arguments, ours)
        thread.start()
        worker = Worker(role, thread, ours)
        self.workers.append(worker)
        return worker

    def pids(self) -> dict[str, int]:
        """One process plays every part."""
        return {"async-0": os.getpid()}


class WorkerThread(threading.Thread):
    """Has what a supervisor asks of a process."""

    def __init__(self, seat: Seat, arguments: dict[str, Any], supervisor: Channel):
        super().__init__(name=seat.role, daemon=True)
        self.pid = os.getpid()
        self.exitcode: int | None = None
        self._seat = seat
        self._arguments = arguments
        self._supervisor = supervisor

    def run(self) -> None:
        """The worker's body; never raises."""
        try:
            self.exitcode = serve(self._seat, self._arguments, time.monotonic())
        finally:
            for end in (self._seat.controller, *self._arguments.values()):
                if isinstance(end, Channel):
                    end.close()

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, but not for ever."""
        super().join(GIVE_UP_SEC if timeout is None else timeout)

    def terminate(self) -> None:
        """Hang up: the thread ends when it next listens or speaks."""
        self._supervisor.hang_up()

    kill = terminate

    def close(self) -> None:
        """Nothing is held once the thread has ended."""
