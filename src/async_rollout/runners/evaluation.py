"""Held-out pass rates in the modes of one process, off the run's clock."""

from collections.abc import Sequence

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
) -> None:
    """Judge both answers to each task and write the pass rates of this version."""
    examination = Examination(version, tasks, sampled, greedy)
    for key, verdict in judge_all(pool, examination.answers).items():
        examination.judged(key, verdict)
    examination.record(recorder)
