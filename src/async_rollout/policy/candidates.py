"""Candidate answers: a task's known answer as a model would write it, and wrong ones by kind.

A kind of mistake is the same for every task, so what is learned about it on some tasks
holds for others. Imports no torch.
"""

from collections.abc import Sequence

from async_rollout.tasks.task import Task

KINDS = 8  # of answers; kind 0 is the right one

_WRITTEN = {"sort": "{}", "gsm8k": "#### {}"}  # how an answer stands in a response, by task type


def candidates(tasks: Sequence[Task]) -> list[list[str]]:
    """For each task its responses by kind, all different: the right one first.

    Raises ValueError for a task whose right response is not known.
    """
    gold = [_gold(task) for task in tasks]
    return [
        [_WRITTEN[task.task_type].format(text) for text in _variants(gold[i], elsewhere=gold[i - 1])]
        for i, task in enumerate(tasks)
    ]


def _gold(task: Task) -> str:
    if task.gold_answer is None or task.task_type not in _WRITTEN:
        raise ValueError(
            f"task {task.task_id} ({task.task_type}): the backends dummy and tabular know no right response "
            "to it; use model.backend = causal_lm"
        )
    return task.gold_answer.replace(",", "")  # in numbers a lost comma would be no mistake


def _variants(gold: str, elsewhere: str) -> list[str]:
    """`gold`, then seven others; `elsewhere` is the gold answer of another task."""
    found = [gold]
    for other in (
        gold[1:],
        gold[:-1],
        gold[::-1],
        gold + gold[-1:],
        _raise_last_digit(gold),
        gold[:1] + gold[2:],
        elsewhere,
    ):
        while other in found:
            other = other[:-1] + "??"
        found.append(other)
    return found


def _raise_last_digit(text: str) -> str:
    """The last digit is one higher, modulo 10; a text without digits stays."""
    for at in reversed(range(len(text))):
        if text[at] in "0123456789":
            return text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
    return text
