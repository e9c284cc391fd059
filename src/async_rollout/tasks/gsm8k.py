"""GSM8K's own files (Cobbe et al. 2021, arXiv:2110.14168): `question`, and `answer` ending in `#### N`."""

from pathlib import Path
from typing import Any

from async_rollout.tasks.jsonl import line_of, read_objects, task_from_row, write_tasks
from async_rollout.tasks.task import Task, TaskError


def convert_gsm8k(source: Path, target: Path) -> int:
    """Write the rows of `source` as a task file; returns their number. TaskError names a bad line."""
    tasks = []
    for number, row in read_objects(source):
        with line_of(source, number):
            tasks.append(_task(f"gsm8k-{source.stem}-{number}", row))
    if not tasks:
        raise TaskError(f"{source}: holds no row; GSM8K has one JSON object a line")
    write_tasks(target, tasks)
    return len(tasks)


def _task(task_id: str, row: dict[str, Any]) -> Task:
    for name in ("question", "answer"):
        if not isinstance(row.get(name), str):
            raise TaskError(f"`{name}` is missing or not a string; GSM8K's rows have `question` and `answer`")
    _, mark, gold = row["answer"].rpartition("####")
    if not mark:
        raise TaskError("`answer` has no `####`; end it with `#### ` and the number")
    return task_from_row(
        {"task_id": task_id, "prompt": row["question"], "task_type": "gsm8k", "gold_answer": gold.strip()}
    )
