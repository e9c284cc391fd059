"""What the modes of one process share: the parts, one step of each, and the evaluation.

A schedule decides only when a batch is drawn and when it is trained. A seed repeats a run bit
for bit.
"""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from async_rollout.config.run import RunConfig
from async_rollout.learner.learner import Learner
from async_rollout.policy.interface import Policy
from async_rollout.policy.prompt import encode_prompts
from async_rollout.policy.registry import build_policy
from async_rollout.policy.respond import respond
from async_rollout.policy.room import check_room
from async_rollout.records.events import Events
from async_rollout.rewards.backend import build_rewards
from async_rollout.rewards.delayed import held_back
from async_rollout.runners.evaluation import record_evaluation
from async_rollout.runners.generator import Generator
from async_rollout.runners.outcome import Outcome
from async_rollout.runtime.checkpoint import load_training, write_training
from async_rollout.runtime.collapse import collapsed
from async_rollout.runtime.keeper import Keeper
from async_rollout.runtime.process import settle
from async_rollout.runtime.progress import Progress
from async_rollout.runtime.recorder import Recorder
from async_rollout.runtime.resources import ResourceLog
from async_rollout.runtime.snapshots import (
    discard_snapshots,
    due_versions,
    is_due,
    load_snapshot,
    snapshot_path,
    write_snapshot,
)
from async_rollout.tasks.splits import read_splits, split_paths
from async_rollout.types import Group


class Loop:
    """One policy that is sampled and trained in turn; `version` counts the batches trained."""

    def __init__(
        self,
        config: RunConfig,
        out: Path,
        policy: Policy,
        generator: Generator,
        recorder: Recorder,
        progress: Progress,
        events: Events,
        resources: ResourceLog,
        keeper: Keeper,
        evaluate: Callable[[int], None],
    ):
        self.config = config
        self.version = keeper.version
        self.collapsed = False
        self._out = out
        self._policy = policy
        self._learner = Learner(config, policy, config.train.devices[0], between=self._in_step)
        self._generator = generator
        self._recorder = recorder
        self._progress = progress
        self._events = events
        self._resources = resources
        self._keeper = keeper
        self._evaluate = evaluate
        if keeper.place is not None:
            load_training(keeper.place, policy, self._learner)
        self._trained = time.monotonic()  # when the last batch was

    @property
    def kept(self) -> list[list[Group]]:
        """Batches that an earlier attempt drew and did not train."""
        return self._keeper.state.work if self._keeper.state else []

    @property
    def done(self) -> bool:
        """True after the last commit, and once the policy has collapsed."""
        return self.collapsed or self.version == self.config.train.updates

    def generate(self) -> list[Group]:
        """The next B judged groups, sampled by the policy as it is."""
        with self._events.span("generate", version=self.version):
            return self._generator.batch(self.version)

    def train(self, groups: list[Group], *, waiting: int = 0) -> None:
        """Train on a batch, which ends in a commit; `waiting` groups are drawn and not trained yet."""
        begun = time.monotonic()
        with self._events.span("train", version=self.version):
            metrics = self._learner.step(groups, self.version)
        if self.config.stress.commit_sec:
            time.sleep(self.config.stress.commit_sec)
        ended = time.monotonic()
        self.version += 1
        row = self._recorder.committed(
            self.version,
            metrics,
            groups,
            waiting=waiting,
            running=0,
            wait_sec=begun - self._trained,
            step_sec=ended - begun,
        )
        self._trained = ended
        self._progress.commit(row)
        self.collapsed = collapsed(self._recorder.commits, self.config.collapse)
        self.look()

    def look(self) -> None:
        """Evaluate the policy as it is, if that is due, while the clock is stopped; or set it aside."""
        if not is_due(self.version, self.config):
            return
        if self.config.evaluation.when == "after":
            with self._events.span("snapshot", version=self.version):
                write_snapshot(self._out, self.version, self._policy)
        elif not any(row.version == self.version for row in self._recorder.evaluations):
            self._recorder.stop_clock()
            self._resources.pause()
            self._progress.enter("evaluating")
            self._evaluate(self.version)
            self._progress.enter("running")
            self._resources.go_on()
            self._trained += self._recorder.go_on()

    def keep(self, drawn: Iterable[list[Group]] = ()) -> None:
        """After a commit: keep the state if it is time, with the batches `drawn` and not trained."""
        if self.done:
            return
        if self._keeper.wanted(self.version):
            with self._events.span("checkpoint", version=self.version):
                sums = write_training(self._keeper.stage(self.version), self._policy, self._learner)
                state = self._recorder.state(self.version, self._resources.cpu_seconds(), list(drawn))
                self._keeper.finish(state, sums)
        self._keeper.leave_if_asked()

    def _in_step(self) -> None:
        self._progress.idle(f"version {self.version}, training")


def run_in_one_process(
    config: RunConfig,
    out: Path,
    data: Path,
    recorder: Recorder,
    progress: Progress,
    keeper: Keeper,
    schedule: Callable[[Loop], None],
) -> Outcome:
    """Build the parts, follow the schedule to the last commit, then evaluate the snapshots."""
    created = time.monotonic()
    role = f"{config.mode}-0"
    splits = read_splits(data, config.data)
    rewards = held_back(build_rewards(split_paths(data), config.reward, out), config)
    with ExitStack() as stack:
        stack.callback(rewards.close)
        events = Events(out / "trace" / f"{role}.jsonl", role)
        stack.callback(events.close)
        rewards.start()
        policy = build_policy(config, device=config.train.devices[0], tasks=splits.train + splits.held_out)
        prompts, held_out = (
            encode_prompts(policy.codec, tasks, config.prompt) for tasks in (splits.train, splits.held_out)
        )
        check_room(prompts + held_out, config)
        rewards.wait_ready(config.supervision.setup_timeout_sec)
        if keeper.place is None:
            write_snapshot(out, 0, policy)
        generator = Generator(config, policy, prompts, rewards, recorder, progress.idle)
        spent = keeper.state.cpu_seconds if keeper.state else {}
        resources = ResourceLog(out / "resources.csv", {role: os.getpid()}, rewards.pids, spent)
        stack.callback(resources.close)

        def evaluate(version: int) -> None:
            """The policy as it is, which is `version`."""

            def tell(text: str) -> None:
                progress.idle(f"evaluating version {version}, {text}")

            sampled, greedy = (
                respond(policy, held_out, config, greedy=greedy, tell=tell) for greedy in (False, True)
            )
            record_evaluation(recorder, rewards, splits.held_out, version, sampled, greedy, tell)

        loop = Loop(config, out, policy, generator, recorder, progress, events, resources, keeper, evaluate)
        settle()
        recorder.start()
        progress.enter("running")
        with keeper.patience():
            if config.evaluation.when == "paused":
                loop.look()
            schedule(loop)
        ended, cpu_seconds, pauses = time.monotonic(), resources.cpu_seconds(), tuple(recorder.pauses)
        if config.train.save_model:
            policy.save(out / "model")
        progress.enter("evaluating")
        progress.say("evaluating")
        for version in due_versions(config, loop.version) if config.evaluation.when == "after" else ():
            load_snapshot(snapshot_path(out, version), policy)
            evaluate(version)
        evaluated = time.monotonic()
    discard_snapshots(out)
    return Outcome(
        loop.version, loop.collapsed, created, recorder.started, ended, evaluated, cpu_seconds, pauses
    )
