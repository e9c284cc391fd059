"""The tasks of a run, read from the files that `prepare` wrote."""

from dataclasses import dataclass
from pathlib import Path

from async_rollout.config.data import DataConfig
from async_rollout.tasks.jsonl import read_tasks
from async_rollout.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Splits:
    """Training and held-out tasks; no prompt is in both."""

    train: list[Task]
    held_out: list[Task]


def split_paths(data: Path) -> list[Path]:
    """Where the two splits lie."""
    return [data / "train.jsonl", data / "eval.jsonl"]


def read_splits(data: Path, config: DataConfig) -> Splits:
    """Both splits, cut to `data.task_limit`. Raises TaskError naming file and line."""
    return Splits(*(read_tasks(path, config.task_limit) for path in split_paths(data)))
