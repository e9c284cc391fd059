"""The embedded task: sort six to ten digits and mark the answer, `5391807>` -> `#0135789`.

A prompt belongs to the eval split or to everything else by a hash of its answer, whatever
the seed: so no training task and no demonstration ever has the answer of an eval task, also
when their seeds differ.
"""

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from async_rollout.tasks.demonstration import Demonstration
from async_rollout.tasks.task import Task

SHORTEST, LONGEST = 6, 10
HELD_OUT_ONE_IN = 8  # answers
MARK = "#"


def generate(train_size: int, eval_size: int, seed: int) -> tuple[list[Task], list[Task]]:
    """Distinct (train, eval) tasks; a larger size only adds tasks to its own split."""
    train: list[Task] = []
    held_out: list[Task] = []
    seen: set[str] = set()
    draws = _digits(np.random.default_rng(seed))
    while len(train) < train_size or len(held_out) < eval_size:
        digits = next(draws)
        split, size = (held_out, eval_size) if is_held_out(digits) else (train, train_size)
        if len(split) < size and digits not in seen:
            seen.add(digits)
            split.append(Task(f"sort-{digits}", f"{digits}>", "sort", MARK + _in_order(digits)))
    return train, held_out


def demonstrations(
    rng: np.random.Generator, n: int, marked_share: float, corrupted_share: float
) -> list[Demonstration]:
    """n demonstrations of one turn for a warm start, never of held-out answers.

    Each answer carries the mark with probability `marked_share` and, independently, is made
    wrong in one digit with probability `corrupted_share`.
    """
    draws = (digits for digits in _digits(rng) if not is_held_out(digits))
    found = []
    for _ in range(n):
        digits = next(draws)
        answer = _in_order(digits)
        marked, corrupted = rng.random(2) < (marked_share, corrupted_share)
        if corrupted:
            answer = _corrupt(rng, answer)
        found.append(Demonstration(f"{digits}>", (MARK + answer if marked else answer,)))
    return found


def is_right(task: Task, text: str) -> bool:
    """True if the response is the gold answer, trailing whitespace apart."""
    return text.rstrip() == task.gold_answer


def is_held_out(digits: str) -> bool:
    """True if these digits, in any order, belong to the eval split."""
    return blake2b(_in_order(digits).encode(), digest_size=8).digest()[0] % HELD_OUT_ONE_IN == 0


def _digits(rng: np.random.Generator) -> Iterator[str]:
    while True:
        length = rng.integers(SHORTEST, LONGEST + 1)
        yield "".join(map(str, rng.integers(0, 10, size=length)))


def _in_order(digits: str) -> str:
    return "".join(sorted(digits))


def _corrupt(rng: np.random.Generator, answer: str) -> str:
    """One digit replaced, dropped, or swapped with its neighbour; never the answer itself."""
    while True:
        wrong = list(answer)
        at = int(rng.integers(len(wrong)))
        match int(rng.integers(3)):
            case 0:
                wrong[at] = str(rng.integers(10))
            case 1:
                del wrong[at]
            case _:
                wrong[at - 1 : at + 1] = reversed(wrong[at - 1 : at + 1])
        if (changed := "".join(wrong)) != answer:
            return changed
