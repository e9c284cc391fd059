"""One judging process, seen from the pool: what it was given, whether it is alive and in time.

It is given a batch only when it holds none, so what it holds can be judged again elsewhere
without two processes ever working on one answer.
"""

import ctypes
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from async_rollout.channels import ChannelClosed, pair
from async_rollout.config.reward import RewardConfig
from async_rollout.records.events import Events
from async_rollout.rewards.judge import RewardError
from async_rollout.rewards.worker import FAILED, IDLE, READY, Result, work

_SPAWN = multiprocessing.get_context("spawn")
START_SEC = 120.0  # to import, to read the tasks and to start what judges them


@dataclass(slots=True)
class Job:
    """One answer to judge."""

    ticket: int
    task_id: str
    text: str
    tries: int = 0


class WorkerHandle:
    """Spawns a worker; `jobs` are the answers that it holds. When it judged goes into `events`."""

    def __init__(self, paths: Sequence[Path], config: RewardConfig, judge: str, events: Events):
        self._in_hand = _SPAWN.RawValue(ctypes.c_int64, IDLE)
        self.channel, theirs = pair()
        arguments = (theirs, self._in_hand, tuple(paths), config, judge)
        self.process = _SPAWN.Process(target=work, args=arguments, name="reward", daemon=True)
        self.process.start()
        self.pid = self.process.pid  # to be asked for by other threads, whatever becomes of the process
        theirs.close()
        self.ready = False
        self.jobs: dict[int, Job] = {}
        self._events = events
        self._heard = time.monotonic()

    def give(self, jobs: Sequence[Job]) -> None:
        """Hand over a batch. Raises ChannelClosed if the process is gone."""
        self.jobs = {job.ticket: job for job in jobs}
        self._heard = time.monotonic()
        self.channel.send([(job.ticket, job.task_id, job.text) for job in jobs])

    def receive(self) -> tuple[list[Result], bool]:
        """(results that arrived, whether the process lives). Raises RewardError if it could not start."""
        results: list[Result] = []
        try:
            self.channel.flush()
            while messages := self.channel.receive():
                self._heard = time.monotonic()
                for message in messages:
                    if message == READY:
                        self.ready = True
                    elif message[0] == FAILED:
                        raise RewardError(f"a reward worker could not start:\n{message[1]}")
                    else:
                        begun, ended, judged = message
                        self._events.add("judge", begun, ended, answers=len(judged))
                        results += judged
        except ChannelClosed:
            return results, False
        return results, True

    def deadline(self, timeout: float) -> float:
        """When it must have been heard of, on the monotonic clock; infinite while it holds nothing."""
        if not self.ready:
            return self._heard + START_SEC
        return self._heard + timeout if self.jobs else float("inf")

    def suspect(self) -> Job | None:
        """The answer in hand when the process died or hung: else the first that it holds."""
        return self.jobs.get(self._in_hand.value) or next(iter(self.jobs.values()), None)

    def kill(self) -> None:
        """Kill the process, by its id, and reap it."""
        self.process.kill()
        self.process.join()
        self.process.close()
        self.channel.close()
