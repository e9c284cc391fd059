"""One answer, one verdict: the judge of each task type, as the `reward` block has it.

A verdict that leaves here has a finite float as its reward. A judge that raises, or returns
anything else, is a failure of ours, named by its task type, and never becomes a reward.
"""

import math
import sys
from collections.abc import Callable, Iterable

from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.numeric import judge_numeric
from async_rollout.tasks import calculator
from async_rollout.tasks.task import Task, family
from async_rollout.types import Verdict

Judge = Callable[[Task, str], Verdict]


class RewardError(RuntimeError):
    """Answers could not be judged; not the fault of the answer."""


def build_judge(config: RewardConfig, task_types: Iterable[str]) -> Judge:
    """The judge of tasks of these types; what it needs is started now. Raises RewardError if it cannot be."""
    names = sorted(set(task_types))
    judges = {name: _BUILDERS[name](config) for name in sorted(set(map(family, names)) - {"reasoning_gym"})}
    if reasoning := [name for name in names if family(name) == "reasoning_gym"]:
        judges["reasoning_gym"] = _reasoning(config, reasoning)
    return lambda task, text: attempt(judges[family(task.task_type)], task, text)


def attempt(function: Judge, task: Task, text: str) -> Verdict:
    """The function's verdict. Raises RewardError if it raises or returns anything but a verdict."""
    try:
        verdict = function(task, text)
    except RewardError:
        raise
    except Exception as error:
        raise RewardError(f"judge of `{task.task_type}` failed on task {task.task_id}: {error!r}") from error
    if isinstance(verdict, Verdict) and type(verdict.reward) is float and math.isfinite(verdict.reward):
        return verdict
    raise RewardError(
        f"judge of `{task.task_type}` returned {verdict!r:.200} for task {task.task_id}; "
        "it must return a Verdict whose reward is a finite float"
    )


def _exact(config: RewardConfig) -> Judge:
    def judge(task: Task, text: str) -> Verdict:
        """1 if the text is the gold answer, trailing whitespace apart."""
        answer = text.rstrip()
        correct = answer == task.gold_answer
        return Verdict(float(correct), "pass" if correct else "fail", answer)

    return judge


def _calculator(config: RewardConfig) -> Judge:
    def judge(task: Task, text: str) -> Verdict:
        """1 if the response ends with the right number after its mark; observations are no answer."""
        correct = calculator.is_right(task, text)
        return Verdict(float(correct), "pass" if correct else "fail", calculator.answer(text))

    return judge


def _numeric(config: RewardConfig) -> Judge:
    return lambda task, text: judge_numeric(task.gold_answer, text, strict=config.strict)


def _math(config: RewardConfig) -> Judge:
    from async_rollout.rewards.math import MathJudge

    judge = MathJudge(config.math_seconds)
    return lambda task, text: judge(task.gold_answer, text)


def _coding(config: RewardConfig) -> Judge:
    from async_rollout.rewards.code import CodeJudge

    judge = CodeJudge(config)
    sandbox = judge.sandbox
    print(f"[reward] programs run {sandbox.level}: {', '.join(sandbox.granted)}", file=sys.stderr, flush=True)
    return judge


def _reasoning(config: RewardConfig, task_types: list[str]) -> Judge:
    from async_rollout.rewards.reasoning import ReasoningJudge

    return ReasoningJudge(task_types, config.math_seconds, strict=config.strict)


_BUILDERS: dict[str, Callable[[RewardConfig], Judge]] = {
    "sort": _exact,
    "calculator": _calculator,
    "gsm8k": _numeric,
    "math": _math,
    "coding": _coding,
}
