"""GSM8K (Cobbe et al. 2021, arXiv:2110.14168): `question`, and `answer` ending in `#### N`."""

from typing import Any

from async_rollout.tasks.hub import Hub
from async_rollout.tasks.jsonl import task_from_row
from async_rollout.tasks.task import Task, TaskError

HUB = Hub("openai/gsm8k", "main")


def gsm8k_task(task_id: str, row: dict[str, Any]) -> Task:
    """The task of one row. Raises TaskError if it is no row of GSM8K."""
    for name in ("question", "answer"):
        if not isinstance(row.get(name), str):
            raise TaskError(f"`{name}` is missing or not a string; GSM8K's rows have `question` and `answer`")
    _, mark, gold = row["answer"].rpartition("####")
    if not mark:
        raise TaskError("`answer` has no `####`; end it with `#### ` and the number")
    return task_from_row(
        {"task_id": task_id, "prompt": row["question"], "task_type": "gsm8k", "gold_answer": gold.strip()}
    )
