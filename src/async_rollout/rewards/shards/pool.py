"""The reward pool over a shared directory: what `RewardPool` promises, with workers on any host.

Every answer submitted comes back from `poll` exactly once. A worker that dies or is silent for
longer than one answer may take is replaced; the answer in its hand has then failed once, and the
others wait for the next worker where they are. No ticket is ever used twice, by a try or by another
attempt of the run: what comes late belongs to nobody.
"""

import json
import math
import secrets
import shutil
import subprocess
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.handle import START_SEC
from async_rollout.rewards.judge import RewardError
from async_rollout.rewards.shards import layout
from async_rollout.rewards.shards.launch import host_of, launch
from async_rollout.types import Verdict

_LOOK_SEC = 0.02  # between two looks at the directory
_BEAT_SEC = 1.0
_GRACE_SEC = 5.0  # a file may be seen late
_END_SEC = 3.0  # workers get to end by themselves


@dataclass(slots=True)
class _Answer:
    key: Hashable
    task_id: str
    text: str
    shard: int
    tries: int = 0


@dataclass(slots=True)
class _Worker:
    shard: layout.Shard
    process: subprocess.Popen | None  # on this host; None: started by hand
    incarnation: int
    heard: float  # when its heartbeat last changed, by this host's clock
    heartbeat: str = ""
    ready: bool = False


class ShardedRewards:
    """Judges answers to the tasks in `paths` by `config.workers` workers that share `root`."""

    def __init__(self, paths: Sequence[Path], config: RewardConfig, root: Path):
        self._paths = list(paths)
        self._config = config
        self._root = root
        self._workers: list[_Worker] = []
        self._answers: dict[str, _Answer] = {}
        self._done: list[tuple[Hashable, Verdict]] = []
        self._tickets = map(f"{secrets.token_hex(8)}-{{:012d}}".format, count())
        self._beaten = 0.0
        self._failed_starts = 0
        self.failures = 0  # answers that no try could judge
        self.replaced = 0  # workers that died or hung

    def start(self) -> None:
        """Set the directory up and start the workers; returns at once."""
        self._root.mkdir(parents=True, exist_ok=True)
        (self._root / "stop").unlink(missing_ok=True)
        layout.write_setup(self._root, self._config, self._paths)
        layout.beat_of_run(self._root)
        for number in range(self._config.workers):
            shard = layout.Shard(self._root, number)
            shard.make()
            for directory in (shard.requests, shard.verdicts):  # of an earlier attempt
                for _, path in layout.waiting(directory):
                    path.unlink(missing_ok=True)
            self._workers.append(self._spawn(shard))

    @property
    def ready(self) -> bool:
        """True if every worker has loaded its tasks, as far as `poll` has heard."""
        return all(worker.ready for worker in self._workers)

    def wait_ready(self, timeout: float) -> None:
        """Block until `ready`. Raises RewardError if a worker cannot start or time is up."""
        deadline = time.monotonic() + timeout
        while missing := [worker.shard.number for worker in self._workers if not worker.ready]:
            if time.monotonic() > deadline:
                names = ", ".join(f"reward-{n} ({host_of(n, self._config)})" for n in missing)
                raise RewardError(f"reward workers were not ready after {timeout:g} s: {names}")
            self._collect()
            time.sleep(_LOOK_SEC)

    def submit(self, key: Hashable, task_id: str, text: str) -> None:
        """Have an answer judged; `poll` returns the verdict under the key."""
        ticket = next(self._tickets)
        self._request(ticket, _Answer(key, task_id, text, layout.shard_of(ticket, len(self._workers))))

    def poll(self) -> list[tuple[Hashable, Verdict]]:
        """Verdicts that have arrived. Raises RewardError once more than `max_failures` answers failed."""
        self._collect()
        done, self._done = self._done, []
        return done

    @property
    def pending(self) -> int:
        """Answers submitted that `poll` has not returned."""
        return len(self._answers) + len(self._done)

    def waitables(self) -> list:
        """Nothing can be waited on: `poll` is due when `patience` is over."""
        return []

    def patience(self) -> float:
        """Seconds after which `poll` is due."""
        return _LOOK_SEC if self._answers else _BEAT_SEC / 2

    def pids(self) -> list[int]:
        """Processes on this host that stand for the workers."""
        return [worker.process.pid for worker in self._workers if worker.process]

    def close(self) -> None:
        """Have the workers end; those on this host are gone when this returns."""
        if not self._workers:
            return
        (self._root / "stop").touch()
        deadline = time.monotonic() + _END_SEC
        while self._workers:
            process = self._workers.pop().process
            if process is not None:
                _end(process, deadline)
        if "hand" not in self._config.hosts:
            shutil.rmtree(self._root, ignore_errors=True)

    def _spawn(self, shard: layout.Shard) -> _Worker:
        incarnation = shard.next_incarnation()
        process = launch(self._root, shard.number, incarnation, self._config)
        return _Worker(shard, process, incarnation, time.monotonic())

    def _request(self, ticket: str, answer: _Answer) -> None:
        self._answers[ticket] = answer
        content = {"task_id": answer.task_id, "text": answer.text}
        layout.put(self._workers[answer.shard].shard.requests, ticket, content)

    def _collect(self) -> None:
        now = time.monotonic()
        if now - self._beaten > _BEAT_SEC:
            layout.beat_of_run(self._root)
            self._beaten = now
        for place, worker in enumerate(self._workers):
            for ticket, path in layout.waiting(worker.shard.verdicts):
                self._receive(ticket, json.loads(path.read_text(encoding="utf-8")))
                path.unlink(missing_ok=True)
            self._listen(worker, now)
            if worker.process is not None and worker.process.poll() is not None:
                self._replace(place, "its reward worker died")
            elif now - worker.heard > self._patience_with(worker):
                self._replace(place, f"judging took more than {self._config.timeout_sec:g} s")

    def _patience_with(self, worker: _Worker) -> float:
        if worker.process is None and not worker.ready:
            return math.inf  # whoever starts it by hand takes their time
        return self._config.timeout_sec + _GRACE_SEC if worker.ready else START_SEC

    def _listen(self, worker: _Worker, now: float) -> None:
        text, incarnation, _ = worker.shard.heartbeat()
        if worker.process is None:
            worker.incarnation = max(worker.incarnation, incarnation)
        if incarnation == worker.incarnation and text != worker.heartbeat:
            worker.heartbeat, worker.heard, worker.ready = text, now, True

    def _receive(self, ticket: str, content: dict) -> None:
        if ticket not in self._answers:
            return  # of an earlier try or attempt
        if "failed" in content:
            self._failed(ticket, content["failed"])
        else:
            self._done.append((self._answers.pop(ticket).key, Verdict(**content)))

    def _replace(self, place: int, reason: str) -> None:
        worker = self._workers[place]
        if worker.process is not None:
            worker.process.kill()
            worker.process.wait()
        self._failed_starts = 0 if worker.ready else self._failed_starts + 1
        if self._failed_starts > self._config.retries:
            raise RewardError(f"{self._failed_starts} reward workers in a row died before they were ready")
        self.replaced += 1
        _, incarnation, in_hand = worker.shard.heartbeat()
        self._workers[place] = self._spawn(worker.shard)
        held = incarnation == worker.incarnation and in_hand in self._answers
        if held and not (worker.shard.verdicts / f"{in_hand}.json").exists():
            self._failed(in_hand, reason)

    def _failed(self, ticket: str, reason: str) -> None:
        answer = self._answers.pop(ticket)
        (self._workers[answer.shard].shard.requests / f"{ticket}.json").unlink(missing_ok=True)
        answer.tries += 1
        if answer.tries <= self._config.retries:
            self._request(next(self._tickets), answer)
            return
        self.failures += 1
        self._done.append((answer.key, Verdict(math.nan, "infrastructure", reason, infrastructure=True)))
        if self.failures > self._config.max_failures:
            raise RewardError(
                f"{self.failures} answers could not be judged, more than reward.max_failures allows "
                f"({self._config.max_failures}); the last, to task {answer.task_id}: {reason}"
            )


def _end(process: subprocess.Popen, deadline: float) -> None:
    """Wait for the process until the deadline, then kill it."""
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
