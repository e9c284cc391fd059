"""One file of tasks, split in two: a prompt is in one of the splits, never in both."""

from hashlib import blake2b

from async_rollout.tasks.task import Task, TaskError


def split(tasks: list[Task], eval_size: int, seed: int) -> tuple[list[Task], list[Task]]:
    """(train, eval) in an order drawn by seed and prompt, so the order of the file does not matter.

    Tasks with one prompt (whitespace apart) stay together. Raises TaskError if `eval_size`
    leaves nothing to train on.
    """
    by_prompt: dict[str, list[Task]] = {}
    for task in tasks:
        by_prompt.setdefault(" ".join(task.prompt.split()), []).append(task)
    train: list[Task] = []
    held_out: list[Task] = []
    for prompt in sorted(by_prompt, key=lambda prompt: _draw(seed, prompt)):
        alike = sorted(by_prompt[prompt], key=lambda task: task.task_id)
        fits = len(held_out) + len(alike) <= eval_size
        (held_out if fits else train).extend(alike)
    if not train or not held_out:
        most = len(tasks) - 1
        raise TaskError(
            f"{len(tasks)} tasks with {len(by_prompt)} distinct prompts cannot be split with eval_size "
            f"{eval_size}: {'eval' if train else 'train'} would be empty; set data.eval_size to at most "
            f"{most}, better {max(1, len(tasks) // 4)}, or add tasks"
        )
    return train, held_out


def shuffled(tasks: list[Task], seed: int) -> list[Task]:
    """The tasks in an order drawn by seed and prompt."""
    return sorted(tasks, key=lambda task: (_draw(seed, task.prompt), task.task_id))


def _draw(seed: int, prompt: str) -> bytes:
    return blake2b(f"{seed}\n{prompt}".encode(), digest_size=16).digest()
