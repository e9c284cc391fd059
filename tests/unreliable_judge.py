"""A judge that fails on some answers, for runs that must survive it."""

import zlib

from async_rollout.rewards.judge import judge
from async_rollout.tasks.sort import is_held_out
from async_rollout.tasks.task import Task
from async_rollout.types import Verdict

PATH = "unreliable_judge:judge_or_fail"


def judge_or_fail(task: Task, text: str) -> Verdict:
    """The true verdict, but for one answer in eleven to the training tasks, always the same ones."""
    seldom = zlib.crc32(f"{task.task_id} {text}".encode()) % 11 == 0
    if seldom and not is_held_out(task.prompt.removesuffix(">")):
        raise OSError("this answer cannot be judged")
    return judge(task, text)
