"""Held-out pass rates, off the run's clock: snapshots are evaluated after the last commit."""

from collections.abc import Sequence

from async_rollout.rewards.backend import Rewards
from async_rollout.runners.judging import judge_all
from async_rollout.runtime.recorder import Recorder
from async_rollout.tasks.task import Task
from async_rollout.types import Verdict


class UnjudgedEvaluation(Exception):
    """An evaluation answer could not be judged: its pass rate would be a guess."""


def record_evaluation(
    recorder: Recorder,
    pool: Rewards,
    tasks: Sequence[Task],
    version: int,
    sampled: Sequence[str],
    greedy: Sequence[str],
) -> None:
    """Judge both answers to each task and write the pass rates of this version."""
    answers = [
        ((version, kind, i), task.task_id, texts[i])
        for kind, texts in (("sampled", sampled), ("greedy", greedy))
        for i, task in enumerate(tasks)
    ]
    verdicts = judge_all(pool, answers)
    rates = {
        kind: _rate([v for (_, k, _), v in verdicts.items() if k == kind]) for kind in ("sampled", "greedy")
    }
    recorder.evaluated(version, rates["sampled"], rates["greedy"], len(tasks))


def _rate(verdicts: Sequence[Verdict]) -> float:
    if failed := [v for v in verdicts if v.infrastructure]:
        raise UnjudgedEvaluation(f"{len(failed)} of {len(verdicts)} evaluation answers could not be judged")
    return sum(v.correct for v in verdicts) / len(verdicts)
