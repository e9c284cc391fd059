"""Known answers as a model would write them, and wrong ones of eight kinds.

A kind of mistake is the same for every task, so that what is learned about it on some
tasks holds for others. Imports no torch.
"""

from collections.abc import Sequence

from async_rollout.tasks.task import Task

KINDS = 8  # of answers; kind 0 is the right one


def right_answer(task: Task) -> str:
    """A response to the task that its judge accepts. Raises ValueError without a gold answer."""
    if task.gold_answer is None:
        raise ValueError(f"task {task.task_id} has no gold_answer: only the causal_lm backend can try it")
    match task.task_type:
        case "gsm8k":
            return f"#### {task.gold_answer}"
        case "math":
            return f"\\boxed{{{task.gold_answer}}}"
        case _:
            return task.gold_answer


def candidates(tasks: Sequence[Task]) -> list[list[str]]:
    """For each task its answers by kind, all different: the right one first."""
    right = [right_answer(task) for task in tasks]
    return [_with_mistakes(answer, right[i - 1]) for i, answer in enumerate(right)]


def _with_mistakes(right: str, elsewhere: str) -> list[str]:
    """`right`, then seven wrong ones; `elsewhere` is the right answer of another task."""
    found = [right]
    for wrong in (
        right[1:],
        right[:-1],
        right[::-1],
        right + right[-1:],
        _raise_last_digit(right),
        right[:1] + right[2:],
        elsewhere,
    ):
        while wrong in found:
            wrong = wrong[:-1] + "??"
        found.append(wrong)
    return found


def _raise_last_digit(text: str) -> str:
    """The last digit is one higher, modulo 10; a text without digits stays."""
    for at in reversed(range(len(text))):
        if text[at] in "0123456789":
            return text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
    return text
