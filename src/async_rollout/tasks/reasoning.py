"""Procedural tasks of reasoning-gym (arXiv:2505.24760, extra `reasoning`), each with its own verifier.

`gold_answer` holds what the verifier needs: the entry's answer and metadata, as JSON. An entry
that its own verifier does not accept after that journey is left out.
"""

import json
from importlib.metadata import version
from typing import Any

from async_rollout.tasks.task import Task, TaskError

_TRIES = 20  # entries drawn for each that is wanted, before a family counts as too small


def generate(dataset: str, train_size: int, eval_size: int, seed: int) -> tuple[list[Task], list[Task], int]:
    """Distinct (train, eval) tasks of `reasoning_gym:NAME`, and how many entries were left out.

    A larger train_size only adds tasks. Raises TaskError if the package or the name is missing.
    """
    name = dataset.partition(":")[2]
    gym = load(dataset)
    wanted = train_size + eval_size
    entries = gym.create_dataset(name, size=_TRIES * wanted, seed=seed)
    score = gym.get_score_answer_fn(name)
    tasks: dict[str, Task] = {}
    left_out = 0
    for i in range(_TRIES * wanted):
        if len(tasks) == wanted:
            break
        entry = entries[i]
        gold = _as_json(entry)
        if gold is None or score(entry["answer"], entry_of(entry["question"], gold)) != 1.0:
            left_out += 1
            continue
        task = Task(f"{name}-{seed}-{i}", entry["question"], dataset, gold)
        tasks.setdefault(" ".join(task.prompt.split()), task)
    if len(tasks) < wanted:
        raise TaskError(
            f"dataset `{dataset}` gave {len(tasks)} different tasks of the {wanted} wanted; "
            "lower data.train_size or data.eval_size"
        )
    found = list(tasks.values())
    return found[eval_size:], found[:eval_size], left_out


def load(dataset: str) -> Any:
    """The package. Raises TaskError in one line if it, or the dataset in it, is missing."""
    try:
        import reasoning_gym
        from reasoning_gym.factory import DATASETS
    except ImportError as error:
        raise TaskError(
            f"dataset `{dataset}` needs reasoning-gym ({error}): pip install -e '.[reasoning]'"
        ) from None
    if (name := dataset.partition(":")[2]) not in DATASETS:
        some = ", ".join(sorted(DATASETS)[:8])
        raise TaskError(f"dataset `{dataset}`: reasoning-gym has no `{name}`; it has {some}, ...")
    return reasoning_gym


def revision() -> str:
    """Which version of the package makes the tasks."""
    return f"reasoning-gym {version('reasoning-gym')}"


def entry_of(question: str, gold: str) -> dict[str, Any]:
    """The entry that a verifier wants, from a task's prompt and gold answer."""
    return {"question": question, **json.loads(gold)}


def _as_json(entry: dict[str, Any]) -> str | None:
    """Answer and metadata as JSON text; None if they are more than plain data."""
    try:
        return json.dumps({"answer": entry["answer"], "metadata": entry["metadata"]}, allow_nan=False)
    except (TypeError, ValueError):
        return None
