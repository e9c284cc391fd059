"""What the embedded model is shown before RL: demonstrations of a task, never of held-out ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from async_rollout.config.model import WarmStartConfig
from async_rollout.config.prompt import PromptConfig
from async_rollout.tasks import coding, sort
from async_rollout.tasks.prompts import prompt_text

HELD_OUT = 256  # of `sort`; `coding` has six


@dataclass(frozen=True, slots=True)
class Question:
    """A held-out prompt, and the answers that are right."""

    prompt: str
    right: frozenset[str]


@dataclass(frozen=True, slots=True)
class Curriculum:
    """Demonstrations without end, and what the result is measured on."""

    draw: Callable[[np.random.Generator, int], list[tuple[str, str]]]  # n pairs (prompt, answer)
    questions: Sequence[Question]
    answer_tokens: int  # at most, and one for the end


def curriculum_of(config: WarmStartConfig) -> Curriculum:
    """The demonstrations of `warm_start.task`."""
    return {"sort": _sort, "coding": _coding}[config.task](config)


def _sort(config: WarmStartConfig) -> Curriculum:
    _, held_out = sort.generate(0, HELD_OUT, config.seed)
    return Curriculum(
        lambda rng, n: sort.demonstrations(rng, n, config.marked_share, config.corrupted_share),
        [Question(task.prompt, frozenset([task.gold_answer])) for task in held_out],
        answer_tokens=16,
    )


def _coding(config: WarmStartConfig) -> Curriculum:
    """Prompts as the default `prompt.coding` makes them; right programs are known by their text."""
    prompts = PromptConfig()

    def draw(rng: np.random.Generator, n: int) -> list[tuple[str, str]]:
        pairs = coding.demonstrations(rng, n, config.corrupted_share)
        return [(prompt_text(task, prompts), program) for task, program in pairs]

    questions = [
        Question(prompt_text(problem.task(), prompts), frozenset(problem.programs(right=True)))
        for problem in coding.HELD_OUT
    ]
    return Curriculum(draw, questions, answer_tokens=128)
