"""One answer, one verdict: the judge of each task type.

A verdict that leaves here has a finite float as its reward. A judge that raises, or returns
anything else, is a failure of ours, named by its task type, and never becomes a reward.
"""

import math
from collections.abc import Callable

from async_rollout.rewards.numeric import judge_numeric
from async_rollout.tasks.task import Task
from async_rollout.types import Verdict

Judge = Callable[[Task, str], Verdict]


class RewardError(RuntimeError):
    """Answers could not be judged; not the fault of the answer."""


def judge(task: Task, text: str) -> Verdict:
    """Judge the text as an answer to the task. Raises RewardError if the judge itself fails."""
    return attempt(JUDGES[task.task_type], task, text)


def attempt(function: Judge, task: Task, text: str) -> Verdict:
    """The function's verdict. Raises RewardError if it raises or returns anything but a verdict."""
    try:
        verdict = function(task, text)
    except RewardError:
        raise
    except Exception as error:
        raise RewardError(f"judge of `{task.task_type}` failed on task {task.task_id}: {error!r}") from error
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


JUDGES: dict[str, Judge] = {"sort": _exact, "gsm8k": _numeric}
