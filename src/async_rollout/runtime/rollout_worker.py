"""The rollout worker: a decoding engine that newer weights may interrupt in mid-sample.

Weights change only between two forwards, so the version on a token is that of the weights
whose logits it was sampled from. At least `rollout.min_decode_steps` steps lie between two
interruptions, except for the sake of work that was admitted since: none starts under weights
older than its admission. Reloading never takes more than `rollout.max_recompute_share` of the
time, even so. With `rollout.update: drain` nothing is interrupted: no slot is refilled until
the running samples are done. While the run pauses it stands still between two steps.
"""

import time
from collections import deque
from itertools import islice, takewhile
from pathlib import Path

from async_rollout.channels import Channel
from async_rollout.config.run import RunConfig
from async_rollout.policy.interface import Policy
from async_rollout.policy.registry import build_policy
from async_rollout.policy.respond import respond
from async_rollout.records.events import Events
from async_rollout.runtime import messages as say
from async_rollout.runtime.process import settle
from async_rollout.runtime.snapshots import load_snapshot
from async_rollout.runtime.transfer import Transfer
from async_rollout.runtime.weights import WeightStore
from async_rollout.tasks.splits import read_splits
from async_rollout.types import SampleRequest, Trajectory


class RolloutWorker:
    """One engine, its queue of work and its place at the weight store."""

    def __init__(
        self,
        index: int,
        controller: Channel,
        store: WeightStore,
        config: RunConfig,
        policy: Policy,
        events: Events,
    ):
        self._index = index
        self._controller = controller
        self._store = store
        self._config = config
        self._policy = policy
        self._events = events
        self._version = 0  # of the weights that it was built with; a later version is read before any work
        store.forget(index)
        self._engine = policy.engine(slots=config.slots, seed=config.seed, version=self._version)
        self._transfer = Transfer(policy.parameters())
        self._queue: deque[tuple[int, SampleRequest]] = deque()  # (admitted at, request)
        self._started: list[tuple[int, int]] = []  # groups to report, and the version they began with
        self._steps = 0  # decode steps since the last reload
        self._rested = 0.0  # when another reload keeps to its share of the time, on the monotonic clock
        self._busy_since: float | None = None
        self.still = False  # the run pauses

    @property
    def at_work(self) -> bool:
        """True while there is anything to decode now."""
        return self.busy and not self.still

    @property
    def busy(self) -> bool:
        """True while there is anything to decode."""
        return bool(self._queue) or self._engine.free_slots < self._engine.slots

    def accept(self, work: say.Work) -> None:
        """Queue the samples of a group."""
        self._queue.extend((work.admitted_at, request) for request in work.requests)

    def cancel(self, groups: frozenset[int]) -> None:
        """Forget these groups, queued or running, and say what was lost with them."""
        held = [*self._engine.running(), *(request.id for _, request in self._queue)]
        begun = self._engine.cancel(groups)
        self._queue = deque(item for item in self._queue if item[1].id.group not in groups)
        if gone := tuple(sample for sample in held if sample.group in groups):
            self._controller.send(say.Cancelled(gone, self._with_texts(begun)))

    def advance(self) -> None:
        """Reload if it is due, fill free slots, decode one step, report what finished."""
        if self._busy_since is None:
            self._busy_since = time.monotonic()
        if self._reload_is_due():
            self._reload()
        self._start()
        self._report(self._engine.step())
        self._steps += 1
        if self._config.stress.decode_sec:
            time.sleep(self._config.stress.decode_sec)

    def pause(self) -> None:
        """Nothing to decode: close the current span of the trace."""
        if self._busy_since is not None:
            self._events.add("generate", self._busy_since, time.monotonic(), version=self._version)
            self._busy_since = None

    def evaluate(self, message: say.Evaluate) -> say.Evaluated:
        """Answer prompts under a snapshot's weights; samples that are running go on under their own."""
        with self._events.span("evaluate", version=message.version), self._transfer.kept():
            load_snapshot(Path(message.weights), self._policy)
            sampled, greedy = (
                respond(self._policy, message.prompts, self._config, greedy=greedy)
                for greedy in (False, True)
            )
        return say.Evaluated(message.version, tuple(sampled), tuple(greedy))

    def _outdated(self) -> bool:
        return self._store.version != self._version

    def _reload_is_due(self) -> bool:
        if not self._outdated():
            return False
        if self._engine.free_slots == self._engine.slots:  # nothing is interrupted
            return True
        if self._config.rollout.update == "drain" or time.monotonic() < self._rested:
            return False
        startable = min(self._engine.free_slots, len(self._queue))
        if startable and self._queue[startable - 1][0] > self._version:  # admissions never go back
            return True
        return self._steps >= self._config.rollout.min_decode_steps

    def _start(self) -> None:
        """Fill free slots, but not with what was admitted under newer weights; none while draining."""
        if self._config.rollout.update == "drain" and self._outdated():
            return
        first = islice(self._queue, self._engine.free_slots)
        requests = [request for _, request in takewhile(lambda item: item[0] <= self._version, first)]
        for request in requests:
            self._queue.popleft()
            if request.id.sample == 0:  # a group's samples start in order
                self._started.append((request.id.group, self._version))
        self._engine.submit(requests)

    def _reload(self) -> None:
        self.pause()
        begun = time.monotonic()
        self._version = self._store.read(self._index, self._transfer.layout, self._transfer.copy_out)
        keep = self._config.rollout.update == "keep_kv"
        cost = self._engine.weights_changed(self._version, keep_cache=keep)
        self._steps = 0
        self._busy_since = time.monotonic()
        seconds = self._busy_since - begun
        self._rested = self._busy_since + seconds * (1 / self._config.rollout.max_recompute_share - 1)
        self._events.add(
            "reload", begun, self._busy_since, version=self._version, resumed=cost.resumed_samples
        )
        self._controller.send(
            say.Reloaded(self._version, cost.resumed_samples, cost.tokens, seconds, self._new_groups())
        )

    def _report(self, finished: list[Trajectory]) -> None:
        if finished:
            self._controller.send(say.Finished(self._with_texts(finished), self._new_groups()))
        elif self._controller.unsent:
            self._controller.flush()

    def _with_texts(self, trajectories: list[Trajectory]) -> tuple[tuple[Trajectory, str], ...]:
        return tuple((t, self._policy.codec.decode(t.response_ids.tolist())) for t in trajectories)

    def _new_groups(self) -> say.Started:
        started, self._started = tuple(self._started), []
        return started


def main(
    controller: Channel,
    events: Events,
    started: float,
    *,
    index: int,
    config: dict,
    store: WeightStore,
    data: Path,
) -> None:
    """Body of the process: build the parts, then serve the controller until it says stop."""
    run = RunConfig.model_validate(config)
    device = run.rollout.devices[index % len(run.rollout.devices)]
    splits = read_splits(data, run.data)
    policy = build_policy(run, device=device, tasks=splits.train + splits.held_out)
    worker = RolloutWorker(index, controller, store, run, policy, events)
    settle()
    controller.send(say.Ready(time.monotonic() - started))
    while True:
        if not worker.at_work:
            worker.pause()
        for message in controller.receive() if worker.at_work else controller.wait():
            match message:
                case say.Stop():
                    worker.pause()
                    return
                case say.Work():
                    worker.accept(message)
                case say.Cancel():
                    worker.cancel(message.groups)
                case say.Pause():
                    worker.still = True
                    controller.send(say.Paused())
                case say.Resume():
                    worker.still = False
                case say.Evaluate():
                    controller.send(worker.evaluate(message))
        if worker.at_work:
            worker.advance()
