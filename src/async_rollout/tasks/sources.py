"""Where tasks come from: the sweep key `datasets` names a source, this finds its tasks.

What a source returns depends on its name, the `data` block and, for `jsonl:PATH` and the hub,
the file or revision: nothing else. No prompt is in both splits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from async_rollout.config.axes import DATASETS
from async_rollout.config.data import DataConfig
from async_rollout.tasks import calculator, coding, gsm8k, math, reasoning, sort
from async_rollout.tasks.hub import Hub, hub_rows
from async_rollout.tasks.jsonl import read_tasks
from async_rollout.tasks.split import shuffled, split
from async_rollout.tasks.task import Task, TaskError

MakeTask = Callable[[str, dict[str, Any]], Task]


@dataclass(frozen=True, slots=True)
class Source:
    """The tasks of both splits, and what the manifest says of where they are from."""

    train: list[Task]
    held_out: list[Task]
    revision: str | None = None  # of the hub's repository, or of the package that makes them
    left_out: int = 0  # problems that no judge could judge


def load_source(dataset: str, data: DataConfig) -> Source:
    """The tasks. Files and hub give at most `train_size` and `eval_size`, procedures just as many."""
    check_dataset(dataset)
    name, _, rest = dataset.partition(":")
    match name:
        case "sort":
            return Source(*sort.generate(data.train_size, data.eval_size, data.seed))
        case "coding":
            return Source(*coding.generate(data.train_size, data.eval_size, data.seed))
        case "calculator":
            return Source(*calculator.generate(data.train_size, data.eval_size, data.seed))
        case "reasoning_gym":
            train, held_out, left_out = reasoning.generate(
                dataset, data.train_size, data.eval_size, data.seed
            )
            return Source(train, held_out, reasoning.revision(), left_out)
        case "gsm8k":
            return _from_hub(dataset, gsm8k.HUB, gsm8k.gsm8k_task, data)
        case "math":
            return _from_hub(dataset, math.HUB, math.math_task, data)
        case _:
            path = Path(rest).expanduser()
            train, held_out = split(read_tasks(path), data.eval_size, data.seed)
            train = train[: data.train_size]
            math.check_golds(str(path), train + held_out)
            return Source(train, held_out)


def check_dataset(dataset: str) -> None:
    """Raise TaskError unless this version has the source; a file need not exist yet."""
    name, _, rest = dataset.partition(":")
    if name not in DATASETS or bool(rest) != DATASETS[name]:
        available = ", ".join(f"{name}:..." if named else name for name, named in DATASETS.items())
        raise TaskError(f"dataset `{dataset}` does not exist; available: {available}")


def _from_hub(
    dataset: str, hub: Hub, task: Callable[[str, dict[str, Any]], Task], data: DataConfig
) -> Source:
    rows = hub_rows(dataset, hub, data.revision)
    left_out = 0
    splits: list[list[Task]] = []
    for name, size in (("test", data.eval_size), ("train", data.train_size)):
        tasks = []
        for number, row in enumerate(getattr(rows, name)):
            try:
                tasks.append(task(f"{dataset}-{name}-{number}", row))
            except TaskError:
                left_out += 1
        seen = {" ".join(t.prompt.split()) for t in (splits[0] if splits else [])}
        tasks = [t for t in shuffled(tasks, data.seed) if " ".join(t.prompt.split()) not in seen]
        chosen, bad = _readable(tasks, size)
        left_out += bad
        splits.append(chosen)
    return Source(splits[1], splits[0], rows.revision, left_out)


def _readable(tasks: list[Task], size: int) -> tuple[list[Task], int]:
    """The first `size` tasks that can be judged, and how many before them cannot."""
    chosen: list[Task] = []
    begun = bad = 0
    while len(chosen) < size and begun < len(tasks):
        batch = tasks[begun : begun + size - len(chosen)]
        begun += len(batch)
        unread = {task.task_id for task in math.unreadable(batch)}
        bad += len(unread)
        chosen += [task for task in batch if task.task_id not in unread]
    return chosen, bad
