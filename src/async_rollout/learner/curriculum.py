"""What the embedded model is shown before RL: demonstrations of a task, never of held-out ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from async_rollout.config.model import WarmStartConfig
from async_rollout.config.prompt import PromptConfig
from async_rollout.tasks import calculator, coding, sort
from async_rollout.tasks.demonstration import Demonstration
from async_rollout.tasks.prompts import prompt_text

HELD_OUT = 256  # of `sort` and `calculator`; `coding` has six


@dataclass(frozen=True, slots=True)
class Question:
    """A held-out prompt, and which responses solve it."""

    prompt: str
    is_right: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Curriculum:
    """Demonstrations without end, and what the result is measured on."""

    draw: Callable[[np.random.Generator, int], list[Demonstration]]
    questions: Sequence[Question]
    answer_tokens: int  # at most, observations and one for the end included
    environment: str = ""  # see tasks/environment.py


def curriculum_of(config: WarmStartConfig) -> Curriculum:
    """The demonstrations of `warm_start.task`, `sort` where no dataset has decided it."""
    return {"sort": _sort, "coding": _coding, "calculator": _calculator}[config.on("sort").task](config)


def _sort(config: WarmStartConfig) -> Curriculum:
    _, held_out = sort.generate(0, HELD_OUT, config.seed)
    return Curriculum(
        lambda rng, n: sort.demonstrations(rng, n, config.marked_share, config.corrupted_share),
        [Question(task.prompt, partial(sort.is_right, task)) for task in held_out],
        answer_tokens=16,
    )


def _calculator(config: WarmStartConfig) -> Curriculum:
    _, held_out = calculator.generate(0, HELD_OUT, config.seed)
    return Curriculum(
        lambda rng, n: calculator.demonstrations(rng, n, config.marked_share, config.corrupted_share),
        [Question(task.prompt, partial(calculator.is_right, task)) for task in held_out],
        answer_tokens=48,
        environment="calculator",
    )


def _coding(config: WarmStartConfig) -> Curriculum:
    """Prompts as the default `prompt.coding` makes them; right programs are known by their text."""
    prompts = PromptConfig()

    def draw(rng: np.random.Generator, n: int) -> list[tuple[str, str]]:
        pairs = coding.demonstrations(rng, n, config.corrupted_share)
        return [Demonstration(prompt_text(task, prompts), (program,)) for task, program in pairs]

    questions = [
        Question(prompt_text(problem.task(), prompts), frozenset(problem.programs(right=True)).__contains__)
        for problem in coding.HELD_OUT
    ]
    return Curriculum(draw, questions, answer_tokens=128)
