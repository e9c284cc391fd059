"""Mode `sync`: generate B groups, have them judged, train, repeat; one process, one policy.

Every token is sampled by the policy that is about to be trained; a seed repeats the run bit
for bit.
"""

import os
import shutil
import time
from collections import deque
from itertools import groupby
from pathlib import Path

from async_rollout.config.run import RunConfig
from async_rollout.learner.learner import Learner
from async_rollout.policy.interface import Engine, Policy
from async_rollout.policy.registry import build_policy
from async_rollout.policy.respond import respond
from async_rollout.rewards.pool import RewardPool
from async_rollout.runners.evaluation import record_evaluation
from async_rollout.runners.judging import judge_all
from async_rollout.runners.outcome import Outcome
from async_rollout.runtime.controller import Prompt
from async_rollout.runtime.events import Events
from async_rollout.runtime.progress import Progress
from async_rollout.runtime.recorder import Recorder
from async_rollout.runtime.resources import ResourceLog
from async_rollout.runtime.snapshots import due_versions, is_due, load_snapshot, snapshot_path, write_snapshot
from async_rollout.tasks.order import TaskOrder
from async_rollout.tasks.prompts import prompt_text
from async_rollout.tasks.splits import read_splits, split_paths
from async_rollout.tasks.task import Task
from async_rollout.types import Group, Sample, SampleId, SampleRequest, Trajectory


class Generator:
    """Draws and judges whole groups with the policy as it is."""

    def __init__(
        self,
        config: RunConfig,
        policy: Policy,
        prompts: list[Prompt],
        rewards: RewardPool,
        recorder: Recorder,
    ):
        self._config = config
        self._codec = policy.codec
        self._engine: Engine = policy.engine(slots=config.slots, seed=config.seed, version=0)
        self._prompts = prompts
        self._order = TaskOrder(len(prompts), config.seed)
        self._rewards = rewards
        self._recorder = recorder

    def batch(self, version: int) -> list[Group]:
        """B judged groups, sampled by policy version `version`; what nobody could judge is drawn anew."""
        self._engine.weights_changed(version)
        groups: list[Group] = []
        while missing := self._config.batch.groups - len(groups):
            groups += self._judged(self._draw(missing, version), version)
        return groups

    def _draw(self, groups: int, version: int) -> list[Trajectory]:
        waiting: deque[SampleRequest] = deque()
        for _ in range(groups):
            number = self._recorder.totals.submitted
            self._recorder.totals.submitted += 1
            waiting.extend(
                SampleRequest(
                    SampleId(number, i), self._prompt(number).ids, self._config.sampling.max_new_tokens
                )
                for i in range(self._config.batch.group_size)
            )
        finished: list[Trajectory] = []
        while waiting or self._engine.free_slots < self._engine.slots:
            starting = min(self._engine.free_slots, len(waiting))
            if starting:
                self._engine.submit([waiting.popleft() for _ in range(starting)])
            finished += self._engine.step()
        for trajectory in finished:
            self._recorder.generated(trajectory, version)
        return sorted(finished, key=lambda t: t.id)

    def _judged(self, trajectories: list[Trajectory], version: int) -> list[Group]:
        texts = [self._codec.decode(t.response_ids.tolist()) for t in trajectories]
        verdicts = judge_all(
            self._rewards,
            [
                (t.id, self._prompt(t.id.group).task_id, text)
                for t, text in zip(trajectories, texts, strict=True)
            ],
        )
        samples = [Sample(t, text, verdicts[t.id]) for t, text in zip(trajectories, texts, strict=True)]
        groups = []
        for number, members in groupby(samples, key=lambda s: s.trajectory.id.group):
            group = Group(number, self._prompt(number).task_id, tuple(members))
            if failed := [s for s in group.samples if s.verdict.infrastructure]:
                self._recorder.totals.infrastructure_failures += len(failed)
                self._recorder.dropped(group.samples, number, group.task_id, version, "infrastructure")
            else:
                groups.append(group)
        return groups

    def _prompt(self, number: int) -> Prompt:
        return self._prompts[self._order.index(number)[1]]


def run(config: RunConfig, out: Path, data: Path, recorder: Recorder, progress: Progress) -> Outcome:
    """Run to the last commit, then evaluate the snapshots."""
    created = time.monotonic()
    device = config.train.devices[0]
    splits = read_splits(data, config.data)
    rewards = RewardPool(split_paths(data), config.reward)
    events = Events(out / "trace" / "sync-0.jsonl", "sync-0")
    try:
        rewards.start()
        policy = build_policy(config, device=device, tasks=splits.train + splits.held_out)
        learner = Learner(config, policy, device)
        prompts = [Prompt(t.task_id, policy.codec.encode(prompt_text(t))) for t in splits.train]
        rewards.wait_ready(config.supervision.setup_timeout_sec)
        resources = ResourceLog(out / "resources.csv", {"sync-0": os.getpid()})
        write_snapshot(out, 0, policy)
        generator = Generator(config, policy, prompts, rewards, recorder)
        cpu = time.process_time()
        recorder.start()
        progress.enter("running")
        for version in range(config.train.updates):
            begun = time.monotonic()
            with events.span("generate", version=version):
                groups = generator.batch(version)
            generated = time.monotonic()
            with events.span("train", version=version):
                metrics = learner.step(groups, version)
            row = recorder.committed(
                version + 1,
                metrics,
                groups,
                waiting=0,
                running=0,
                wait_sec=generated - begun,
                step_sec=time.monotonic() - generated,
            )
            progress.commit(row)
            if is_due(version + 1, config):
                with events.span("snapshot", version=version + 1):
                    write_snapshot(out, version + 1, policy)
        ended = time.monotonic()
        cpu_seconds = {"sync": time.process_time() - cpu}
        if config.train.save_model:
            policy.save(out / "model")
        progress.enter("evaluating")
        progress.say("evaluating")
        _evaluate(config, out, policy, rewards, recorder, splits.held_out)
        evaluated = time.monotonic()
        resources.close()
    finally:
        rewards.close()
        events.close()
    shutil.rmtree(out / "snapshots")
    return Outcome(config.train.updates, created, recorder.started, ended, evaluated, cpu_seconds)


def _evaluate(
    config: RunConfig, out: Path, policy: Policy, rewards: RewardPool, recorder: Recorder, tasks: list[Task]
) -> None:
    prompts = [policy.codec.encode(prompt_text(t)) for t in tasks]
    for version in due_versions(config):
        load_snapshot(snapshot_path(out, version), policy)
        sampled, greedy = (respond(policy, prompts, config, greedy=greedy) for greedy in (False, True))
        record_evaluation(recorder, rewards, tasks, version, sampled, greedy)
