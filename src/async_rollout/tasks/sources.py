"""Where tasks come from: the sweep key `datasets` names a source, this finds its tasks.

What a source returns depends on its name, the `data` block and, for `jsonl:PATH`, the file:
nothing else. No prompt is in both splits.
"""

from pathlib import Path

from async_rollout.config.data import DataConfig
from async_rollout.tasks import sort
from async_rollout.tasks.jsonl import read_tasks
from async_rollout.tasks.split import split
from async_rollout.tasks.task import Task, TaskError

AVAILABLE = "sort, jsonl:PATH"
_LATER = ("gsm8k", "math", "coding", "calculator")


def load_source(dataset: str, data: DataConfig) -> tuple[list[Task], list[Task]]:
    """(train, eval) tasks. A file gives at most `train_size` and `eval_size`, `sort` just as many."""
    check_dataset(dataset)
    if dataset == "sort":
        return sort.generate(data.train_size, data.eval_size, data.seed)
    train, held_out = split(read_tasks(source_file(dataset)), data.eval_size, data.seed)
    return train[: data.train_size], held_out


def check_dataset(dataset: str) -> None:
    """Raise TaskError unless this version has the source; a file need not exist yet."""
    if dataset == "sort" or (dataset.startswith("jsonl:") and dataset != "jsonl:"):
        return
    if dataset == "gsm8k":
        raise TaskError(
            "dataset `gsm8k` is not fetched by this version; convert its file with "
            "`async-rollout prepare gsm8k --from FILE --out tasks.jsonl` and use `jsonl:tasks.jsonl`"
        )
    if dataset in _LATER or dataset.startswith("reasoning_gym:"):
        raise TaskError(f"dataset `{dataset}` is not available in this version; available: {AVAILABLE}")
    raise TaskError(f"dataset `{dataset}` does not exist; available: {AVAILABLE}")


def source_file(dataset: str) -> Path | None:
    """The file that the source reads, None if it makes its tasks itself."""
    kind, colon, path = dataset.partition(":")
    return Path(path).expanduser() if kind == "jsonl" and colon else None
