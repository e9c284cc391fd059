"""A task of several turns: `17*24+9=`, too much to do in the head, with a calculator at hand.

The model may write a call, `[17*24]`, and the environment goes on with `408;`; any number of
calls may follow, and `#417` at the end is the answer. A prompt belongs to the eval split or
to everything else by a hash of itself, whatever the seed.
"""

import re
from collections.abc import Callable, Iterator
from hashlib import blake2b

import numpy as np

from async_rollout.tasks.demonstration import Demonstration
from async_rollout.tasks.task import Task

CALL_START, CALL_END, MARK = "[", "]", "#"
UNREADABLE = "?;"  # the observation that follows a call which is no calculation
HELD_OUT_ONE_IN = 8  # prompts

_CALCULATION = re.compile(r"([0-9]{1,6})([*+-])([0-9]{1,6})")
_ANSWER = re.compile(r"#(-?[0-9]+)\Z")


def observe(text: str) -> str | None:
    """The result that follows a response which ends in a call; None if it ends in none.

    Two numbers of at most six digits and one of `*+-`; any other call is `?;`.
    """
    text = text.rstrip()
    if not text.endswith(CALL_END) or CALL_START not in text:
        return None
    call = _CALCULATION.fullmatch(text[text.rindex(CALL_START) + 1 : -1])
    if call is None:
        return UNREADABLE
    left, right = int(call[1]), int(call[3])
    result = {"*": left * right, "+": left + right, "-": left - right}[call[2]]
    return f"{result};"


def answer(text: str) -> str | None:
    """The number that the response ends with, after its mark; None if it gives none."""
    found = _ANSWER.search(text.rstrip())
    return found[1] if found else None


def is_right(task: Task, text: str) -> bool:
    """True if the response ends with the right answer."""
    return answer(text) == task.gold_answer


def generate(train_size: int, eval_size: int, seed: int) -> tuple[list[Task], list[Task]]:
    """Distinct (train, eval) tasks; a larger size only adds tasks to its own split."""
    train: list[Task] = []
    held_out: list[Task] = []
    seen: set[str] = set()
    draws = _expressions(np.random.default_rng(seed))
    while len(train) < train_size or len(held_out) < eval_size:
        expression = next(draws)
        split, size = (held_out, eval_size) if is_held_out(expression) else (train, train_size)
        if len(split) < size and expression not in seen:
            seen.add(expression)
            gold = solution(expression)[-1].removeprefix(MARK)
            split.append(Task(f"calculator-{expression}", f"{expression}=", "calculator", gold))
    return train, held_out


def demonstrations(
    rng: np.random.Generator, n: int, marked_share: float, corrupted_share: float
) -> list[Demonstration]:
    """n demonstrations for a warm start, never of held-out prompts.

    Each answer carries the mark with probability `marked_share` and, independently, one digit of
    one turn is wrong with probability `corrupted_share`; later turns go on from what was observed.
    """
    draws = (expression for expression in _expressions(rng) if not is_held_out(expression))
    found = []
    for _ in range(n):
        expression = next(draws)
        marked, corrupted = rng.random(2) < (marked_share, corrupted_share)
        turns = _with_a_mistake(rng, expression) if corrupted else solution(expression)
        if not marked:
            turns[-1] = turns[-1].removeprefix(MARK)
        found.append(Demonstration(f"{expression}=", tuple(turns)))
    return found


def solution(expression: str) -> list[str]:
    """The turns that solve `a*b+c`: the product, then the sum, then the answer."""
    return _turns(expression, lambda turn, at: turn)


def is_held_out(expression: str) -> bool:
    """True if the prompt belongs to the eval split."""
    return blake2b(expression.encode(), digest_size=8).digest()[0] % HELD_OUT_ONE_IN == 0


def _turns(expression: str, write: Callable[[str, int], str]) -> list[str]:
    """Three turns, each as `write` (turn, index) leaves it, and each based on what the one before gave."""
    product, sign, rest = re.fullmatch(r"([0-9]+\*[0-9]+)([+-])([0-9]+)", expression).groups()
    first = write(f"{CALL_START}{product}{CALL_END}", 0)
    second = write(f"{CALL_START}{observe(first)[:-1]}{sign}{rest}{CALL_END}", 1)
    return [first, second, write(MARK + observe(second)[:-1], 2)]


def _expressions(rng: np.random.Generator) -> Iterator[str]:
    while True:
        left, right = rng.integers(11, 100, size=2)
        yield f"{left}*{right}{'+-'[rng.integers(2)]}{rng.integers(1, 10)}"


def _with_a_mistake(rng: np.random.Generator, expression: str) -> list[str]:
    wrong = rng.integers(3)
    return _turns(expression, lambda turn, at: _corrupt(rng, turn) if at == wrong else turn)


def _corrupt(rng: np.random.Generator, turn: str) -> str:
    """One digit replaced by another."""
    at = int(rng.choice([i for i, character in enumerate(turn) if character.isdigit()]))
    digit = (int(turn[at]) + int(rng.integers(1, 10))) % 10
    return f"{turn[:at]}{digit}{turn[at + 1 :]}"
