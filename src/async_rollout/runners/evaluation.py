"""Held-out pass rates in the modes of one process, off the run's clock."""

from collections.abc import Callable, Sequence

from async_rollout.rewards.backend import Rewards
from async_rollout.runners.judging import judge_all
from async_rollout.runtime.examination import Examination
from async_rollout.runtime.recorder import Recorder
from async_rollout.tasks.task import Task


def record_evaluation(
    recorder: Recorder,
    pool: Rewards,
    tasks: Sequence[Task],
    version: int,
    sampled: Sequence[str],
    greedy: Sequence[str],
    tell: Callable[[str], None],
) -> None:
    """Judge both answers to each task and write the pass rates of this version; `tell` as in judging.py."""
    examination = Examination(version, tasks, sampled, greedy)
    for key, verdict in judge_all(pool, examination.answers, tell).items():
        examination.judged(key, verdict)
    examination.record(recorder)
