"""Keeps rollout workers supplied with samples to draw, and draws again what got lost.

A sample is lost when its worker dies, or when it takes too long; it is drawn again as its
next attempt, with a stream of its own, so that a late copy of the first is told apart. What
is drawn again goes before anything new, and is admitted already.
"""

from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from async_rollout.config.run import RunConfig
from async_rollout.runtime import messages as say
from async_rollout.runtime.assignments import Assignments
from async_rollout.runtime.recorder import Totals
from async_rollout.runtime.replay import Replay
from async_rollout.runtime.supervisor import Supervisor, Worker, WorkerDied
from async_rollout.types import Prompt, SampleId, SampleRequest


class Supply:
    """The rollout workers of one run, and what each of them has in hand.

    `prompt` gives a group's prompt; `judging` holds samples that are drawn and
    have no verdict yet.
    """

    def __init__(
        self,
        run: RunConfig,
        prompt: Callable[[int], Prompt],
        supervisor: Supervisor,
        workers: Sequence[Worker],
        replay: Replay,
        judging: Container[SampleId],
        totals: Totals,
        version: int,
    ):
        self.workers = list(workers)
        self.assignments = Assignments(w.role for w in workers)
        self._run = run
        self._prompt = prompt
        self._supervisor = supervisor
        self._replay = replay
        self._judging = judging
        self._totals = totals
        self._again: deque[list[SampleId]] = deque()  # each of one group, so that one worker gets them
        for _, number in replay.under_way():  # a checkpoint's: nobody draws them any more
            self._draw_again([s for s in replay.unfinished(number) if s not in judging], version)

    def dispatch(self, version: int, may_submit: Callable[[], bool]) -> None:
        """Hand out samples while a worker has room, new groups while they may; to the emptiest first."""
        size = self._run.batch.group_size
        enough = self._run.slots + self._run.rollout.prefetch_groups * size
        ready = [w for w in self.workers if w.ready]
        shares: dict[str, list[SampleId]] = {w.role: [] for w in ready}
        while shares:
            role = min(shares, key=self.assignments.load)
            if self.assignments.load(role) >= enough:
                break
            samples = self._next_lost() or (self._admit(version, size) if may_submit() else [])
            if not samples:
                break
            self.assignments.give(role, samples)
            shares[role] += samples
        for worker in ready:
            if samples := shares[worker.role]:
                self._send(worker, version, samples)

    def cancel(self, groups: Iterable[int]) -> None:
        """Tell every worker to forget these."""
        if groups := frozenset(groups):
            for worker in self.workers:
                self._supervisor.send(worker, say.Cancel(groups))

    def watch(self, version: int) -> list[int]:
        """See to samples that take too long; returns groups that were drawn too often.

        Raises SetupTimeout if a worker's replacement is not ready in time.
        """
        self._supervisor.check_ready()
        overdue = self.assignments.overdue(self._run.rollout.sample_timeout_sec)
        for worker in self.workers:
            if any(each.silent and each.role == worker.role for each in overdue):
                worker.process.kill()  # it hangs: `replace` follows when its channel is found closed
        late = {each.sample.group for each in overdue if not each.silent}
        self.cancel(late)
        return self._retry(self.assignments.withdraw(late), version) if late else []

    def replace(self, worker: Worker, death: WorkerDied, version: int) -> list[int]:
        """Another worker for one that was killed; returns groups that were drawn too often.

        Raises the death itself if somebody else is gone too, or once it happens too often.
        """
        replaceable = {w.role for w in self.workers}
        if not death.killed or not death.killed <= replaceable:
            raise death
        if self._totals.restarts >= self._run.supervision.restarts:
            raise death
        self._totals.restarts += 1
        self.workers[self.workers.index(worker)] = self._supervisor.replace(worker)
        return self._retry(self.assignments.lose(worker.role), version)

    def _retry(self, lost: Iterable[SampleId], version: int) -> list[int]:
        rejected = []
        wanted = sorted(s for s in lost if self._replay.expects(s) and s not in self._judging)
        for number, samples in groupby(wanted, key=attrgetter("group")):
            samples = list(samples)
            if max(s.attempt for s in samples) + 1 >= self._run.rollout.sample_attempts:
                rejected.append(number)
                continue
            self._totals.redrawn_samples += len(samples)
            self._draw_again([self._replay.retry(s) for s in samples], version)
        return rejected

    def _draw_again(self, samples: list[SampleId], version: int) -> None:
        if samples:
            self._replay.renew(samples[0].group, version, whole=len(samples) == self._run.batch.group_size)
            self._again.append(samples)

    def _next_lost(self) -> list[SampleId]:
        while self._again:
            if samples := [s for s in self._again.popleft() if self._replay.expects(s)]:
                return samples  # of a group that is not gone by now
        return []

    def _admit(self, version: int, size: int) -> list[SampleId]:
        number = self._totals.submitted
        self._totals.submitted += 1
        self._replay.open(number, self._prompt(number).task_id, size, version)
        return self._replay.unfinished(number)

    def _send(self, worker: Worker, version: int, samples: Sequence[SampleId]) -> None:
        limit = self._run.sampling.max_new_tokens
        prompts = {number: self._prompt(number) for number in {s.group for s in samples}}
        requests = tuple(SampleRequest.of(s, prompts[s.group], limit) for s in samples)
        self._supervisor.send(worker, say.Work(version, requests))
