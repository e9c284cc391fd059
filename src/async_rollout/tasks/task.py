"""One problem: what is asked and how an answer is judged.

A task that exists can be judged: its type is one that this version has a judge for, and it
carries what that judge compares with.
"""

import re
from dataclasses import dataclass

AVAILABLE = ("sort", "gsm8k", "math", "coding", "calculator", "reasoning_gym:NAME")


class TaskError(ValueError):
    """A task, a file of tasks or a source of tasks cannot be used; the message names place and fix."""


@dataclass(frozen=True, slots=True)
class Task:
    """A problem. `gold_answer` or `reference_tests` judges the answer, by task type."""

    task_id: str
    prompt: str
    task_type: str
    gold_answer: str | None = None
    reference_tests: tuple[str, ...] = ()
    starter_code: str | None = None


def check_task_type(name: str) -> None:
    """Raise TaskError unless this version has a judge for the task type."""
    if name in AVAILABLE or re.fullmatch(r"reasoning_gym:\w+", name):
        return
    available = ", ".join(AVAILABLE)
    raise TaskError(f"task_type `{name}` is unknown; available: {available}")


def family(task_type: str) -> str:
    """What a task type is judged by: itself, or `reasoning_gym` for any `reasoning_gym:NAME`."""
    return task_type.partition(":")[0]
