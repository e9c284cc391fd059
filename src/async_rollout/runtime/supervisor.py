"""Starts the run's processes, knows when one died, and leaves none behind.

A process is spawned, never forked; it dies with its parent; its end of the channel closes
when it dies, whatever killed it. `stop` returns only when every process is gone.
"""

import atexit
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from async_rollout.channels import Channel, ChannelClosed, pair, poll
from async_rollout.config.supervision import SupervisionConfig
from async_rollout.records.states import Reason
from async_rollout.runtime import messages as say
from async_rollout.runtime.process import PEER_GONE, Seat, live

_LAST_WORDS_SEC = 2.0  # for a process that closed its channel to be gone


class WorkerDied(Exception):
    """A process ended that should not have; the message names it and holds its traceback."""

    def __init__(self, message: str, reason: Reason = "error", killed: frozenset[str] = frozenset()):
        super().__init__(message)
        self.reason = reason
        self.killed = killed  # roles of all who are gone, if each was ended by a signal


class SetupTimeout(Exception):
    """A process was not ready in time; the message names it."""


@dataclass(slots=True)
class Worker:
    """A process of the run, seen from the controller."""

    role: str
    process: Any  # multiprocessing's process handle
    channel: Channel
    target: str = ""
    threads: int = 1
    arguments: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)
    ready: bool = False
    unheard: list[Any] = field(default_factory=list)  # came with its Ready


class Supervisor:
    """All processes of one run, its judges apart."""

    def __init__(self, config: SupervisionConfig, out: Path):
        self._config = config
        self._out = out
        self._context = multiprocessing.get_context("spawn")
        self.workers: list[Worker] = []
        atexit.register(self._kill)

    def start(self, role: str, target: str, *, threads: int, **arguments: Any) -> Worker:
        """Spawn `target` (`module:function`) as `role`; channels among `arguments` go with it."""
        ours, theirs = pair()
        seat = Seat(role, target, threads, self._out, theirs)
        # Daemonic: if `stop` itself is cut short, Python's own exit kills it rather than waits for it.
        process = self._context.Process(target=live, args=(seat, arguments), name=role, daemon=True)
        process.start()
        for end in (theirs, *(a for a in arguments.values() if isinstance(a, Channel))):
            end.close()
        worker = Worker(role, process, ours, target, threads, arguments)
        self.workers.append(worker)
        return worker

    def replace(self, worker: Worker) -> Worker:
        """Another process in the place of one that died; it is not ready yet."""
        self.workers.remove(worker)
        _end(worker.process)
        worker.channel.close()
        return self.start(worker.role, worker.target, threads=worker.threads, **worker.arguments)

    def pids(self) -> dict[str, int]:
        """Process by role, this one included."""
        return {w.role: w.process.pid for w in self.workers} | {"controller-0": os.getpid()}

    def wait_ready(self) -> None:
        """Return when every process has built its parts; the run's clock starts then."""
        begun = notice = time.monotonic()
        while missing := [w for w in self.workers if not w.ready]:
            waited = time.monotonic() - begun
            names = ", ".join(w.role for w in missing)
            if waited >= self._config.setup_timeout_sec:
                raise SetupTimeout(
                    f"not ready after {waited:.0f} s: {names}; see stderr.log, or raise "
                    f"supervision.setup_timeout_sec ({self._config.setup_timeout_sec:g})"
                )
            self.poll([], min(self._config.setup_poll_sec, self._config.setup_timeout_sec - waited))
            for worker in self.workers:  # the ready ones too: one may die while others build
                worker.unheard = self.receive(worker)
            if time.monotonic() - notice >= self._config.setup_poll_sec:
                print(f"waiting for {names}", file=sys.stderr, flush=True)
                notice = time.monotonic()

    def check_ready(self) -> None:
        """Raise SetupTimeout if one that was started later takes too long."""
        limit = time.monotonic() - self._config.setup_timeout_sec
        for worker in self.workers:
            if not worker.ready and worker.started < limit:
                raise SetupTimeout(f"{worker.role} was not ready after {self._config.setup_timeout_sec:g} s")

    def receive(self, worker: Worker) -> list[Any]:
        """Messages of a worker, but for its being ready. Raises WorkerDied if it failed or is gone."""
        messages, worker.unheard = worker.unheard, []
        try:
            messages += worker.channel.receive()
        except ChannelClosed:
            raise self._obituary() from None
        for message in messages:
            if isinstance(message, say.Failed):
                raise WorkerDied(f"{worker.role} failed:\n{message.traceback}", message.reason)
            worker.ready |= isinstance(message, say.Ready)
        return [message for message in messages if not isinstance(message, say.Ready)]

    def send(self, worker: Worker, message: Any) -> None:
        """Queue a message. That a worker is gone is told by `receive`, after its last words."""
        with suppress(ChannelClosed):
            worker.channel.send(message)

    def poll(self, also: Iterable[Any], timeout: float) -> None:
        """Wait for a message of any worker, or for anything else with `fileno()`."""
        poll([*(w.channel for w in self.workers), *also], timeout)

    def stop(self) -> None:
        """End every process: by word, then by signal. Safe to call in any state.

        A process that is still building its parts would not hear the word in time.
        """
        for worker in self.workers:
            if not (worker.ready and _tell_to_stop(worker)):
                worker.process.kill()
        deadline = time.monotonic() + self._config.shutdown_sec
        open_ = [w for w in self.workers if w.process.is_alive()]
        while open_ and time.monotonic() < deadline:
            poll([w.channel for w in open_], 0.1)
            open_ = [w for w in open_ if _is_open(w.channel)]
        for worker in self.workers:
            _end(worker.process)
            worker.channel.close()
        self.workers = []
        atexit.unregister(self._kill)

    def _kill(self) -> None:
        """Before Python's own exit, which would send SIGTERM and wait: workers leave that to the parent."""
        for worker in self.workers:
            worker.process.kill()

    def _obituary(self) -> WorkerDied:
        """Who is gone and how, the first cause first, once the dead had time to be seen.

        One that ended only because its peer did is seen dead before the peer is, at times.
        """
        deadline = time.monotonic() + _LAST_WORDS_SEC
        while True:
            dead = sorted((w for w in self.workers if not w.process.is_alive()), key=_is_consequence)
            if dead and not _is_consequence(dead[0]):
                break
            if time.monotonic() > deadline:
                if dead:
                    break
                return WorkerDied("a worker closed its channel and lives on")
            time.sleep(0.01)
        texts, reasons = zip(*(self._epitaph(w) for w in dead), strict=True)
        killed = all(w.process.exitcode < 0 for w in dead)
        return WorkerDied(
            "\n".join(texts),
            next((r for r in reasons if r != "error"), "error"),
            frozenset(w.role for w in dead) if killed else frozenset(),
        )

    def _epitaph(self, worker: Worker) -> tuple[str, Reason]:
        code = worker.process.exitcode
        how = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
        try:
            said = [m for m in worker.channel.receive() if isinstance(m, say.Failed)]
        except ChannelClosed:
            said = []
        killed = "killed" if code == -signal.SIGKILL else "error"
        text = "\n".join([f"{worker.role} (pid {worker.process.pid}) {how}", *(m.traceback for m in said)])
        return text, said[-1].reason if said else killed


def _is_consequence(dead: Worker) -> bool:
    return dead.process.exitcode == PEER_GONE


def _is_open(channel: Channel) -> bool:
    """Make room for what a stopping worker still says; False once it is gone."""
    try:
        channel.receive()
    except ChannelClosed:
        return False
    return True


def _tell_to_stop(worker: Worker) -> bool:
    try:
        worker.channel.send(say.Stop())
    except ChannelClosed:
        return False
    return True


def _end(process: Any) -> None:
    """Make sure that a process is gone, and reap it."""
    process.join(0.01)
    if process.is_alive():
        process.kill()
    process.join()
    process.close()
