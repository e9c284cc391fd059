"""MATH (Hendrycks et al. 2021, arXiv:2103.03874): the gold answer is the last box of `solution`.

A gold answer that math-verify cannot read would be scored 0 for ever: such a problem is left
out here, and is an error in a file that a user writes.
"""

from collections.abc import Iterable
from typing import Any

from async_rollout.killable import Crashed, Killable, Overrun
from async_rollout.tasks.boxed import last_boxed
from async_rollout.tasks.hub import Hub
from async_rollout.tasks.task import Task, TaskError

HUB = Hub("DigitalLearningGmbH/MATH-lighteval")
READ_SEC = 5.0  # to read one gold answer


def math_task(task_id: str, row: dict[str, Any]) -> Task:
    """The task of one row. Raises TaskError if it is no row of MATH."""
    for name in ("problem", "solution"):
        if not isinstance(row.get(name), str):
            raise TaskError(f"`{name}` is missing or not a string; MATH's rows have `problem` and `solution`")
    gold = (last_boxed(row["solution"]) or "").strip()
    if not gold:
        raise TaskError("`solution` has no closed \\boxed{}; its last one is the gold answer")
    return Task(task_id, row["problem"], "math", gold)


def unreadable(tasks: Iterable[Task]) -> list[Task]:
    """Those tasks of type `math` whose gold answer math-verify cannot read."""
    mathematical = [task for task in tasks if task.task_type == "math"]
    if not mathematical:
        return []
    from async_rollout.tasks.expression import readable

    reads = Killable(readable)
    try:
        return [task for task in mathematical if not _within(reads, task.gold_answer)]
    finally:
        reads.close()


def check_golds(where: str, tasks: Iterable[Task]) -> None:
    """Raise TaskError that names the first task with an unreadable gold answer."""
    if bad := unreadable(tasks):
        raise TaskError(
            f"{where}: task_id `{bad[0].task_id}`: `gold_answer` {bad[0].gold_answer[:80]!r} cannot be "
            f"compared by value ({len(bad)} such tasks); write LaTeX like \\frac{{1}}{{2}}, or leave them out"
        )


def _within(reads: Killable, latex: str) -> bool:
    try:
        return reads(latex, READ_SEC)
    except (Overrun, Crashed, RuntimeError):
        return False
