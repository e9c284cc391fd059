"""One answer, one verdict: the judge of each task type.

A verdict that leaves here has a finite float as its reward. A judge that raises, or returns
anything else, is a failure of ours, named by its task type, and never becomes a reward.
"""

import math
from collections.abc import Callable

from async_rollout.rewards.numeric import judge_numeric
from async_rollout.tasks.task import Task
from async_rollout.types import Verdict


class RewardError(RuntimeError):
    """Answers could not be judged; not the fault of the answer."""


def judge(task: Task, text: str) -> Verdict:
    """Judge the text as an answer to the task. Raises RewardError if the judge itself fails."""
    try:
        verdict = JUDGES[task.task_type](task, text)
    except Exception as error:
        raise RewardError(f"judge of `{task.task_type}` failed on task {task.task_id}: {error!r}") from error
    return checked(verdict, task)


def checked(verdict: object, task: Task) -> Verdict:
    """The verdict, if it is one. Raises RewardError that names the task type if not."""
    if isinstance(verdict, Verdict) and type(verdict.reward) is float and math.isfinite(verdict.reward):
        return verdict
    raise RewardError(
        f"judge of `{task.task_type}` returned {verdict!r:.200} for task {task.task_id}; "
        "it must return a Verdict whose reward is a finite float"
    )


def _exact(task: Task, text: str) -> Verdict:
    """1 if the text is the gold answer, trailing whitespace apart."""
    answer = text.rstrip()
    correct = answer == task.gold_answer
    return Verdict(float(correct), "pass" if correct else "fail", answer)


def _numeric(task: Task, text: str) -> Verdict:
    return judge_numeric(task.gold_answer, text)


JUDGES: dict[str, Callable[[Task, str], Verdict]] = {"sort": _exact, "gsm8k": _numeric}
