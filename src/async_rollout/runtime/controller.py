"""The controller: supplies rollout workers, has answers judged, hands batches to the trainer.

It never blocks in a send and never touches weights. A group that it hands over stays with it
until the commit that the group ends in; nothing else may be handed over meanwhile.
"""

from collections.abc import Sequence
from typing import NamedTuple

from async_rollout.config.run import RunConfig
from async_rollout.records.events import Stretches
from async_rollout.rewards.backend import Rewards
from async_rollout.runtime import messages as say
from async_rollout.runtime.collapse import collapsed
from async_rollout.runtime.debt import Debt
from async_rollout.runtime.examiner import Examiner
from async_rollout.runtime.keeper import Keeper
from async_rollout.runtime.progress import Progress
from async_rollout.runtime.recorder import Recorder
from async_rollout.runtime.replay import Replay
from async_rollout.runtime.resources import ResourceLog
from async_rollout.runtime.staleness import Aged, Bounds, choose, may_submit, too_old
from async_rollout.runtime.supervisor import Supervisor, Worker, WorkerDied
from async_rollout.runtime.supply import Prompt, Supply
from async_rollout.runtime.weights import WeightStore
from async_rollout.tasks.order import TaskOrder
from async_rollout.types import Group, Sample, SampleId, Trajectory, Verdict

_POLL_SEC = 0.5
UNJUDGED = Verdict(reward=float("nan"), verdict="unjudged", infrastructure=True)


class _Ended(NamedTuple):
    """A commit, and how things stood when it was heard of."""

    message: say.Committed
    groups: tuple[Group, ...]
    waiting: int
    running: int
    wait_sec: float  # of the trainer, without the pauses of the run


class Controller:
    """State of one asynchronous run."""

    def __init__(
        self,
        run: RunConfig,
        prompts: Sequence[Prompt],
        supervisor: Supervisor,
        rollout: Sequence[Worker],
        trainer: Worker,
        store: WeightStore,
        rewards: Rewards,
        recorder: Recorder,
        progress: Progress,
        resources: ResourceLog,
        keeper: Keeper,
        examiner: Examiner,
        work: Stretches,
    ):
        self._run = run
        self._prompts = prompts
        self._order = TaskOrder(len(prompts), run.seed)
        self._bounds = Bounds(run.batch.groups, run.staleness_bound, run.train.updates)
        self._supervisor = supervisor
        self._trainer = trainer
        self._store = store
        self._rewards = rewards
        self._recorder = recorder
        self._progress = progress
        self._resources = resources
        self._keeper = keeper
        self._examiner = examiner
        self._work = work
        self._debt = Debt(supervisor, run.supervision)  # of the trainer
        self._replay, self._judging = keeper.state.work if keeper.state else (Replay(), {})
        for key, (_, text) in self._judging.items():
            rewards.submit(key, self._task_of(key.group), text)
        self._supply = Supply(
            run,
            self._prompt_of,
            supervisor,
            rollout,
            self._replay,
            self._judging,
            recorder.totals,
            store.version,
        )
        self._requested: int | None = None  # version of the trainer's open request
        self._leased: tuple[Group, ...] = ()
        self._ended: _Ended | None = None  # what the last commit trained, until it is written down
        self._still = False  # the run pauses, and its clock
        self._paused = 0.0  # seconds of that since the last commit
        self._version = store.version
        self.collapsed = False

    def run(self) -> None:
        """Until the last commit, or a collapse."""
        while self._version < self._run.train.updates and not self.collapsed:
            if self._examiner.version is None:
                self._give_up(self._supply.watch(self._version))
                self._supply.dispatch(self._version, self._may_submit)
            self._hand_over()
            self._record()
            self._turn()
            self._debt.check()
        self._record()

    def save_model(self) -> None:
        """After the run, however it ended: the trainer writes its model."""
        self._debt.begin()
        self._supervisor.send(self._trainer, say.Save())
        while self._debt.open:
            self._turn()
            self._debt.check()

    def evaluate(self) -> None:
        """After the run: the versions that are still to be."""
        for version in self._examiner.left(self._version):
            self._examiner.begin(version, self._supply.workers)
            while self._examiner.version is not None:
                self._examiner.advance(self._supply.workers[0])
                self._turn()

    def _turn(self) -> None:
        """Wait until something happens, and see to it."""
        with self._work.wait():
            self._supervisor.poll(self._rewards.waitables(), min(_POLL_SEC, self._rewards.patience()))
        for worker in list(self._supervisor.workers):
            self._listen(worker)
        for key, verdict in self._rewards.poll():
            if not self._examiner.judged(key, verdict):
                self._judged(key, verdict)
        self._progress.idle(
            f"version {self._version}/{self._run.train.updates}, "
            f"queue {self._replay.waiting}+{self._replay.running}, {len(self._judging)} being judged"
            if self._examiner.version is None
            else f"evaluating version {self._examiner.version}"
        )

    def _listen(self, worker: Worker) -> None:
        try:
            messages = self._supervisor.receive(worker)
        except WorkerDied as death:
            self._examiner.still(worker.role)
            self._give_up(self._supply.replace(worker, death, self._version))
            self._resources.add(worker.role, self._supervisor.pids()[worker.role])
            self._progress.say(f"{death}: replaced")
            return
        for message in messages:
            self._hear(worker, message)

    def _hear(self, worker: Worker, message: object) -> None:
        match message:
            case say.Finished():
                self._started(message.started)
                self._supply.assignments.heard(worker.role, [t.id for t, _ in message.samples])
                for trajectory, text in message.samples:
                    self._finished(trajectory, text)
            case say.Cancelled():
                self._supply.assignments.heard(worker.role, message.samples)
                for trajectory, text in message.begun:
                    self._cancelled(trajectory, text)
            case say.Reloaded():
                self._started(message.started)
                self._supply.assignments.heard(worker.role)
                self._recorder.reloaded(message.resumed_samples, message.recomputed_tokens, message.seconds)
            case say.BatchRequest():
                self._requested = message.version
            case say.Paused():
                self._examiner.still(worker.role)
            case say.Evaluated():
                self._examiner.heard(message)
            case say.Pong():
                self._debt.service_is_there()
            case say.Kept():
                self._debt.end()
                work = (self._replay, self._judging)
                state = self._recorder.state(message.version, self._resources.cpu_seconds(), work)
                self._keeper.finish(state, message.sums)
            case say.Saved():
                self._debt.end()
            case say.Committed():
                self._debt.end()
                self._committed(message)

    def _may_submit(self) -> bool:
        totals = self._recorder.totals
        lost = sum(n for what, n in totals.groups.items() if what != "trained")
        return may_submit(totals.submitted - lost, self._version, self._bounds)

    def _prompt_of(self, number: int) -> Prompt:
        return self._prompts[self._order.index(number)[1]]

    def _task_of(self, number: int) -> str:
        return self._prompt_of(number).task_id

    def _finished(self, trajectory: Trajectory, text: str) -> None:
        self._recorder.generated(trajectory, self._store.version)
        task_id = self._task_of(trajectory.id.group)
        if self._replay.expects(trajectory.id) and trajectory.id not in self._judging:
            self._judging[trajectory.id] = (trajectory, text)
            self._rewards.submit(trajectory.id, task_id, text)
        else:
            self._recorder.late(Sample(trajectory, text, UNJUDGED), task_id, self._store.version)

    def _started(self, groups: say.Started) -> None:
        for number, version in groups:
            self._replay.start(number, version)

    def _cancelled(self, trajectory: Trajectory, text: str) -> None:
        version, task_id = self._store.version, self._task_of(trajectory.id.group)
        self._recorder.generated(trajectory, version)
        self._recorder.late(Sample(trajectory, text, UNJUDGED), task_id, version, "cancelled")

    def _judged(self, key: SampleId, verdict: Verdict) -> None:
        trajectory, text = self._judging.pop(key)
        sample = Sample(trajectory, text, verdict)
        self._recorder.totals.infrastructure_failures += verdict.infrastructure
        if not self._replay.expects(key):
            self._recorder.late(sample, self._task_of(key.group), self._store.version)
        elif verdict.infrastructure:
            self._reject(sample)
        else:
            self._replay.add(sample)

    def _reject(self, sample: Sample) -> None:
        """An answer that nobody could judge: the group cannot be normalised, so it goes whole."""
        number = sample.trajectory.id.group
        self._drop([*self._replay.reject(number), sample], number, "infrastructure")

    def _give_up(self, groups: Sequence[int]) -> None:
        """Groups of which a sample was lost too often."""
        for number in groups:
            self._drop(self._replay.reject(number), number, "lost")
        self._supply.cancel(groups)

    def _hand_over(self) -> None:
        if self._requested is None:
            return
        if self._keeper.wanted(self._requested):
            self._record()
            place = self._keeper.stage(self._requested)
            self._requested = None
            self._debt.begin()
            self._supervisor.send(self._trainer, say.Keep(str(place)))
            return
        self._keeper.leave_if_asked()
        if self._examiner.due(self._requested):
            self._examine(self._requested)
            return
        if self._still:
            self._go_on()
        self._drop_stale(self._requested)
        numbers = choose(
            self._replay.complete(),
            self._replay.under_way(),
            self._requested,
            self._bounds,
            self._run.staleness.order,
        )
        if numbers is None:
            return
        self._leased = tuple(self._replay.take(numbers))
        self._requested = None
        self._debt.begin()
        self._supervisor.send(self._trainer, say.Batch(self._leased))

    def _examine(self, version: int) -> None:
        """The trainer waits for a batch: have the others stand still, stop the clock, then evaluate.

        Answers that the judges have already are judged on.
        """
        self._record()
        if self._examiner.version is None:
            self._examiner.begin(version, self._supply.workers)
            self._progress.enter("evaluating")
        if self._examiner.all_still and not self._still:
            self._still = True
            self._recorder.stop_clock()
            self._resources.pause()
        self._examiner.advance(self._supply.workers[0])

    def _go_on(self) -> None:
        """The version has been evaluated: everybody goes on where they stood."""
        self._still = False
        seconds = self._recorder.go_on()
        self._resources.go_on()
        self._paused += seconds
        self._supply.assignments.pause(seconds)
        for worker in self._supply.workers:
            self._supervisor.send(worker, say.Resume())
        self._progress.enter("running")

    def _drop_stale(self, version: int) -> None:
        """Let go of groups that can no longer be trained at this version, running ones too.

        Only the order `completed` leaves any: the others wait for them.
        """
        stale = self._too_old(self._replay.complete(), version)
        cancelled = self._too_old(self._replay.begun(), version)
        for group in self._replay.take(stale):
            self._drop(group.samples, group.number, "stale")
        for number in cancelled:
            self._drop(self._replay.reject(number), number, "stale")
        self._supply.cancel(cancelled)

    def _too_old(self, groups: Sequence[Aged], version: int) -> list[int]:
        return [number for oldest, number in groups if too_old(oldest, version, self._bounds)]

    def _drop(self, samples: Sequence[Sample], number: int, reason: str) -> None:
        # By the store, as ours may lag: tokens can be newer than the last commit heard of.
        self._recorder.dropped(samples, number, self._task_of(number), self._store.version, reason)

    def _committed(self, message: say.Committed) -> None:
        self._version = message.version
        wait_sec, self._paused = message.wait_sec - self._paused, 0.0
        self._ended = _Ended(message, self._leased, self._replay.waiting, self._replay.running, wait_sec)
        self._leased = ()
        self._drop_stale(self._version)
        if self._run.collapse.windows:  # it decides whether there is another batch
            self._record()

    def _record(self) -> None:
        """Write down what the last commit trained, once the trainer has its next batch."""
        if self._ended is None:
            return
        ended, self._ended = self._ended, None
        row = self._recorder.committed(
            ended.message.version,
            ended.message.metrics,
            ended.groups,
            waiting=ended.waiting,
            running=ended.running,
            wait_sec=ended.wait_sec,
            step_sec=ended.message.step_sec,
        )
        self._progress.commit(row)
        self.collapsed = collapsed(self._recorder.commits, self._run.collapse)
