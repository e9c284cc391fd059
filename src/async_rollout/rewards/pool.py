"""Judging off the controller's path: spawned processes that answers go to and verdicts come from.

Every answer submitted comes back from `poll` exactly once. A failure of ours (the judge
raises, its process dies or overruns the answer's time) is tried again and, when no try is
left, comes back as a verdict marked `infrastructure`, whose reward is NaN so that nobody can
take it for one. `submit` and `poll` never block.
"""

import math
import os
import time
from collections import deque
from collections.abc import Hashable, Sequence
from itertools import count
from multiprocessing.connection import wait
from pathlib import Path

from async_rollout.channels import Channel, ChannelClosed
from async_rollout.config.reward import RewardConfig
from async_rollout.records.events import Events
from async_rollout.rewards.handle import Job, WorkerHandle
from async_rollout.rewards.judge import RewardError
from async_rollout.types import Verdict

BATCH = 32  # most answers given to a worker at once
JUDGE = "async_rollout.rewards.judge:build_judge"


class RewardPool:
    """Judges answers to the tasks in `paths`. Start it from a thread that lives as long as it does.

    When its processes judged goes into the directory `trace`, if one is given.
    """

    def __init__(
        self, paths: Sequence[Path], config: RewardConfig, *, judge: str = JUDGE, trace: Path | None = None
    ):
        self._paths = tuple(paths)
        self._config = config
        self._judge = judge
        self._events = [
            Events(trace / f"{role}.jsonl" if trace else Path(os.devnull), role)
            for role in (f"reward-{place}" for place in range(config.workers))
        ]
        self._workers: list[WorkerHandle] = []
        self._waiting: deque[Job] = deque()
        self._keys: dict[int, Hashable] = {}  # by ticket, of the answers that have no verdict yet
        self._done: list[tuple[Hashable, Verdict]] = []
        self._tickets = count()
        self._failed_starts = 0
        self.failures = 0  # answers that no try could judge
        self.replaced = 0  # workers that died or hung

    def start(self) -> None:
        """Spawn the workers; returns at once."""
        self._workers = [self._spawn(place) for place in range(self._config.workers)]

    @property
    def ready(self) -> bool:
        """True if every worker has loaded its tasks, as far as `poll` has heard."""
        return all(worker.ready for worker in self._workers)

    def wait_ready(self, timeout: float) -> None:
        """Block until `ready`. Raises RewardError if a worker cannot start or time is up."""
        deadline = time.monotonic() + timeout
        while missing := [f"reward-{i}" for i, worker in enumerate(self._workers) if not worker.ready]:
            left = deadline - time.monotonic()
            if left <= 0:
                raise RewardError(f"reward workers were not ready after {timeout:g} s: {', '.join(missing)}")
            wait(self.waitables(), min(left, self.patience()))
            self._collect()

    def submit(self, key: Hashable, task_id: str, text: str) -> None:
        """Have an answer judged; `poll` returns the verdict under the key."""
        ticket = next(self._tickets)
        self._keys[ticket] = key
        self._waiting.append(Job(ticket, task_id, text))

    def poll(self) -> list[tuple[Hashable, Verdict]]:
        """Hand out what was submitted; verdicts that have arrived. Due as `waitables` and `patience` say.

        Raises RewardError once more than `max_failures` answers could not be judged.
        """
        self._collect()
        self._hand_out()
        done, self._done = self._done, []
        return done

    @property
    def pending(self) -> int:
        """Answers submitted that `poll` has not returned."""
        return len(self._keys) + len(self._done)

    def waitables(self) -> list[Channel]:
        """What to wait on for reading; changes when a worker is replaced."""
        return [worker.channel for worker in self._workers]

    def patience(self) -> float:
        """Seconds after which `poll` is due even if nothing can be read."""
        if self._waiting and self._free():
            return 0.0
        if any(worker.channel.unsent for worker in self._workers):
            return 0.01
        next_deadline = min(worker.deadline(self._config.timeout_sec) for worker in self._workers)
        return min(max(0.0, next_deadline - time.monotonic()), 3600.0)

    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.pid for worker in self._workers]

    def close(self) -> None:
        """Kill the workers; none is left when this returns."""
        while self._workers:
            self._workers.pop().kill()
        for events in self._events:
            events.close()

    def _spawn(self, place: int) -> WorkerHandle:
        return WorkerHandle(self._paths, self._config, self._judge, self._events[place])

    def _collect(self) -> None:
        for place, worker in enumerate(self._workers):
            results, alive = worker.receive()
            for ticket, verdict in results:
                job = worker.jobs.pop(ticket)
                if isinstance(verdict, Verdict):
                    self._done.append((self._keys.pop(ticket), verdict))
                else:
                    self._failed(job, verdict)
            if not alive:
                self._replace(place, "its reward worker died")
            elif time.monotonic() > worker.deadline(self._config.timeout_sec):
                self._replace(place, f"judging took more than {self._config.timeout_sec:g} s")

    def _free(self) -> list[WorkerHandle]:
        return [worker for worker in self._workers if worker.ready and not worker.jobs]

    def _hand_out(self) -> None:
        free = self._free()
        for idle, worker in zip(range(len(free), 0, -1), free, strict=True):
            size = min(BATCH, math.ceil(len(self._waiting) / idle))
            if size:
                try:
                    worker.give([self._waiting.popleft() for _ in range(size)])
                except ChannelClosed:
                    continue  # it keeps the batch until `_collect` replaces it

    def _replace(self, place: int, reason: str) -> None:
        worker = self._workers[place]
        self._failed_starts = 0 if worker.ready else self._failed_starts + 1
        if self._failed_starts > self._config.retries:
            raise RewardError(f"{self._failed_starts} reward workers in a row died before they were ready")
        suspect = worker.suspect()
        worker.kill()
        self.replaced += 1
        self._waiting.extendleft(job for job in reversed(worker.jobs.values()) if job is not suspect)
        self._workers[place] = self._spawn(place)
        if suspect:
            self._failed(suspect, reason)

    def _failed(self, job: Job, reason: str) -> None:
        job.tries += 1
        if job.tries <= self._config.retries:
            self._waiting.appendleft(job)
            return
        self.failures += 1
        verdict = Verdict(math.nan, "infrastructure", reason, infrastructure=True)
        self._done.append((self._keys.pop(job.ticket), verdict))
        if self.failures > self._config.max_failures:
            raise RewardError(
                f"{self.failures} answers could not be judged, more than reward.max_failures allows "
                f"({self._config.max_failures}); the last, to task {job.task_id}: {reason}"
            )
