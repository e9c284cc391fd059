"""Files of public datasets as task files: what `prepare DATASET --from FILE` does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from async_rollout.tasks.gsm8k import gsm8k_task
from async_rollout.tasks.jsonl import line_of, read_objects, write_tasks
from async_rollout.tasks.math import math_task, unreadable
from async_rollout.tasks.task import Task, TaskError

CONVERTERS: dict[str, Callable[[str, dict[str, Any]], Task]] = {"gsm8k": gsm8k_task, "math": math_task}


def convert(dataset: str, source: Path, target: Path) -> tuple[int, int]:
    """Write the rows of `source` as a task file; returns (tasks written, left out).

    Left out are golds that no judge could read. Raises TaskError naming a bad line.
    """
    tasks = []
    for number, row in read_objects(source):
        with line_of(source, number):
            tasks.append(CONVERTERS[dataset](f"{dataset}-{source.stem}-{number}", row))
    left_out = {task.task_id for task in unreadable(tasks)}
    kept = [task for task in tasks if task.task_id not in left_out]
    if not kept:
        raise TaskError(f"{source}: holds no row of {dataset} that can be used; write one JSON object a line")
    write_tasks(target, kept)
    return len(kept), len(left_out)
