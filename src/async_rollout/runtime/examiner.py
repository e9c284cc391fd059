"""Has policy versions evaluated by a run's first rollout worker, one at a time.

All rollout workers stand still at a step boundary meanwhile, and the trainer waits for a batch
or has ended. One worker answers all prompts, so that pass rates depend neither on how many
there are nor on when it is asked; if it dies, the one that replaces it is asked anew.
"""

import time
from collections.abc import Hashable, Sequence
from pathlib import Path

from async_rollout.config.run import RunConfig
from async_rollout.rewards.backend import Rewards
from async_rollout.runtime import messages as say
from async_rollout.runtime.examination import Examination
from async_rollout.runtime.recorder import Recorder
from async_rollout.runtime.snapshots import due_versions, is_due, snapshot_path
from async_rollout.runtime.supervisor import Supervisor, Worker
from async_rollout.tasks.task import Task
from async_rollout.types import Prompt, Verdict

PATIENCE_SEC = 3600.0  # for one version's answers; then the worker is replaced


class Examiner:
    """Which version is being evaluated, and how far that is."""

    def __init__(
        self,
        config: RunConfig,
        out: Path,
        tasks: Sequence[Task],
        prompts: Sequence[Prompt],
        supervisor: Supervisor,
        rewards: Rewards,
        recorder: Recorder,
    ):
        self.version: int | None = None  # being evaluated
        self._config = config
        self._out = out
        self._tasks = tasks
        self._prompts = tuple(prompts)
        self._supervisor = supervisor
        self._rewards = rewards
        self._recorder = recorder
        self._moving: set[str] = set()  # workers that have not said yet that they stand still
        self._asked: Worker | None = None
        self._since = 0.0  # when it was asked
        self._examination: Examination | None = None  # once there are answers

    def due(self, version: int) -> bool:
        """True if the run is to pause at this version and be evaluated."""
        return (
            self._config.evaluation.when == "paused"
            and is_due(version, self._config)
            and not self._done(version)
        )

    def left(self, last: int) -> list[int]:
        """Versions that a run which ended at version `last` has still to be evaluated at."""
        return [version for version in due_versions(self._config, last) if not self._done(version)]

    def begin(self, version: int, workers: Sequence[Worker]) -> None:
        """Have the workers stand still, as the first step."""
        self.version, self._asked, self._examination = version, None, None
        ready = [worker for worker in workers if worker.ready]
        self._moving = {worker.role for worker in ready}
        for worker in ready:
            self._supervisor.send(worker, say.Pause())

    def still(self, role: str) -> None:
        """A worker stands still, or is gone."""
        self._moving.discard(role)

    @property
    def all_still(self) -> bool:
        """True if nobody decodes for the run any more."""
        return not self._moving

    def advance(self, worker: Worker) -> None:
        """Ask this worker as soon as it can be asked, and kill it if it takes too long.

        Raises SetupTimeout if a worker's replacement is not ready in time.
        """
        self._supervisor.check_ready()
        if self._examination or self._moving or not worker.ready:
            return
        if self._asked is not worker:
            self._asked, self._since = worker, time.monotonic()
            weights = str(snapshot_path(self._out, self.version))
            self._supervisor.send(worker, say.Evaluate(self.version, weights, self._prompts))
        elif time.monotonic() > self._since + PATIENCE_SEC:
            worker.process.kill()

    def heard(self, message: say.Evaluated) -> None:
        """The answers are there: have them judged."""
        self._examination = Examination(message.version, self._tasks, message.sampled, message.greedy)
        for answer in self._examination.answers:
            self._rewards.submit(*answer)

    def judged(self, key: Hashable, verdict: Verdict) -> bool:
        """False if the verdict is on no answer of the evaluation; the last one ends it."""
        if self._examination is None or key not in self._examination.open:
            return False
        self._examination.judged(key, verdict)
        if not self._examination.open:
            self._examination.record(self._recorder)
            self.version = self._examination = None
        return True

    def _done(self, version: int) -> bool:
        return any(row.version == version for row in self._recorder.evaluations)
