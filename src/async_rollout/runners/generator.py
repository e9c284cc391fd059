"""Whole groups from one engine, for the modes of one process.

What is drawn is a function of the seed, the weights and how many groups were drawn before.
"""

import time
from collections import deque
from collections.abc import Callable
from itertools import groupby

from async_rollout.config.run import RunConfig
from async_rollout.policy.interface import Engine, Policy
from async_rollout.rewards.backend import Rewards
from async_rollout.runners.judging import judge_all
from async_rollout.runtime.recorder import Recorder
from async_rollout.tasks.order import TaskOrder
from async_rollout.types import Group, Prompt, Sample, SampleId, SampleRequest, Trajectory


class Generator:
    """Draws and judges whole groups with the policy as it is; `tell` hears after each step how far it is."""

    def __init__(
        self,
        config: RunConfig,
        policy: Policy,
        prompts: list[Prompt],
        rewards: Rewards,
        recorder: Recorder,
        tell: Callable[[str], None],
    ):
        self._config = config
        self._codec = policy.codec
        self._engine: Engine = policy.engine(slots=config.slots, seed=config.seed, version=0)
        self._prompts = prompts
        self._order = TaskOrder(len(prompts), config.seed)
        self._rewards = rewards
        self._recorder = recorder
        self._tell = tell

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
                SampleRequest.of(
                    SampleId(number, i), self._prompt(number), self._config.sampling.max_new_tokens
                )
                for i in range(self._config.batch.group_size)
            )
        samples, finished = len(waiting), list[Trajectory]()
        while waiting or self._engine.free_slots < self._engine.slots:
            starting = min(self._engine.free_slots, len(waiting))
            if starting:
                self._engine.submit([waiting.popleft() for _ in range(starting)])
            finished += self._engine.step()
            self._tell(f"version {version}, {len(finished)} of {samples} drawn")
            if self._config.stress.decode_sec:
                time.sleep(self._config.stress.decode_sec)
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
            lambda text: self._tell(f"version {version}, {text}"),
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
