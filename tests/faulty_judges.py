"""Judges that fail on purpose, for the reward pool's tests. They run in its worker processes."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.judge import Judge, build_judge
from async_rollout.tasks.task import Task
from async_rollout.types import Verdict

judge = build_judge(RewardConfig(), ["gsm8k"])


def _builder(function: Judge) -> Callable[[RewardConfig, set[str]], Judge]:
    """As the pool wants it: what makes the judge, given the configuration and the types of tasks."""
    return lambda config, task_types: function


@_builder
def faulty(task: Task, text: str) -> Verdict:
    """As the answer says: `hang`, `die`, `raise`, `none`, `nan`, else judged as always.

    `hang PATH`, `die PATH` and `raise PATH` fail only while PATH does not exist, and create it.
    """
    order, _, once = text.partition(" ")
    if once and order in ("hang", "die", "raise"):
        if Path(once).exists():
            return judge(task, task.gold_answer)
        Path(once).touch()
    match order:
        case "hang":
            time.sleep(3600)
        case "die":
            os._exit(9)
        case "raise":
            raise KeyError("a fault of the judge")
        case "none":
            return None
        case "nan":
            return Verdict(float("nan"), "pass")
    return judge(task, text)


@_builder
def modules(task: Task, text: str) -> Verdict:
    """Whether the worker has imported any of the comma-separated modules in the answer."""
    return Verdict(0.0, "fail", ",".join(name for name in text.split(",") if name in sys.modules))


@_builder
def slow(task: Task, text: str) -> Verdict:
    """Judged as always, after the seconds that the answer ends with."""
    answer, _, seconds = text.partition(" ")
    time.sleep(float(seconds))
    return judge(task, answer)
