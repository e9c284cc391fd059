"""An answer that the trainer owes, and who is to blame when it does not come.

A process that hangs, or that somebody stopped, keeps its channel open and is not seen dead.
The trainer waits for the parameter service in each commit, so that the silence of the first
may be the fault of the second, which is asked whether it is there.
"""

import time

import psutil

from async_rollout.config.supervision import SupervisionConfig
from async_rollout.runtime import messages as say
from async_rollout.runtime.supervisor import Supervisor, Worker


class WorkerHung(Exception):
    """A process did not answer in time; the message names it."""

    reason = "hung"


class Debt:
    """Nothing is owed at first."""

    def __init__(self, supervisor: Supervisor, config: SupervisionConfig):
        self._supervisor = supervisor
        self._config = config
        self._since: float | None = None
        self._asked: float | None = None  # when the parameter service was

    @property
    def open(self) -> bool:
        """True while the answer has not come."""
        return self._since is not None

    def begin(self) -> None:
        """The trainer was given something to do."""
        self._since, self._asked = time.monotonic(), None

    def end(self) -> None:
        """It has answered."""
        self._since = None

    def check(self) -> None:
        """Raise WorkerHung if the answer, and then the parameter service's, is overdue."""
        now = time.monotonic()
        if self._since is None or now < self._since + self._config.step_timeout_sec:
            return
        if self._asked is None:
            self._asked = now
            for service in self._named("parameter_service"):
                self._supervisor.send(service, say.Ping())
        elif now > self._asked + self._config.shutdown_sec:
            self._blame(self._named("parameter_service"))

    def service_is_there(self) -> None:
        """It has said so: the trainer it is."""
        if self._since is not None:
            trainers = self._named("trainer")
            self._blame([worker for worker in trainers if _is_stopped(worker)] or trainers)

    def _named(self, kind: str) -> list[Worker]:
        return [w for w in self._supervisor.workers if w.role.rsplit("-", 1)[0] == kind]

    def _blame(self, workers: list[Worker]) -> None:
        names = ", ".join(f"{w.role} (pid {w.process.pid})" for w in workers)
        raise WorkerHung(
            f"{names} hangs: no answer for more than supervision.step_timeout_sec "
            f"({self._config.step_timeout_sec:g} s); raise it if a step may take longer"
        )


def _is_stopped(worker: Worker) -> bool:
    try:
        return psutil.Process(worker.process.pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False
