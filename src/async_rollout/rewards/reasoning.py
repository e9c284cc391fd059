"""Answers to reasoning-gym's tasks, scored from 0 to 1 by the task's own verifier.

Some verifiers evaluate the answer as Python. So each answer is scored in a fresh process that
can open no file for writing, no connection and no other process, and is killed in time; and
where only arithmetic is asked for, nothing else is shown to the verifier.
"""

import os
import re
import signal
import sys
from collections.abc import Iterable

from async_rollout.killable import Crashed, Killable, Overrun
from async_rollout.rewards.judge import RewardError
from async_rollout.rewards.sandbox import landlock, namespaces, seccomp, system
from async_rollout.tasks.boxed import last_boxed
from async_rollout.tasks.reasoning import entry_of, load
from async_rollout.tasks.task import Task
from async_rollout.types import Verdict

MAX_LENGTH = 10_000  # characters of an answer
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.IGNORECASE | re.DOTALL)
_ARITHMETIC = re.compile(r"[-+*/() .0-9\s]*")
_ONLY_ARITHMETIC = ("countdown", "puzzle24")


class ReasoningJudge:
    """Scores answers to tasks of some types, each within `timeout_sec`.

    Raises RewardError if the kernel has no Landlock.
    """

    def __init__(self, task_types: Iterable[str], timeout_sec: float, *, strict: bool):
        task_types = sorted(task_types)
        if not landlock.abi():
            raise RewardError(
                f"answers to {', '.join(f'`{t}`' for t in task_types)} are not scored here: this kernel "
                f"({os.uname().release}) has no Landlock (Linux 5.13) to hold their verifiers off files"
            )
        self._timeout = timeout_sec
        self._strict = strict
        self._scores = {t: load(t).get_score_answer_fn(t.partition(":")[2]) for t in task_types}
        self._rules = landlock.ruleset(_readable(), None)
        self._filter = seccomp.build_filter(seccomp.TALK)

    def __call__(self, task: Task, text: str) -> Verdict:
        """The verifier's score is the reward; `pass` is a score of 1."""
        answer = extract(text, strict=self._strict)
        if not answer:
            return Verdict(0.0, "no_answer")
        name = task.task_type.partition(":")[2]
        if len(answer) > MAX_LENGTH or (name in _ONLY_ARITHMETIC and not _ARITHMETIC.fullmatch(answer)):
            return Verdict(0.0, "malformed", answer[:200])
        scores = Killable(self._score, prepare=self._confine)
        try:
            score = float(scores((task, answer), self._timeout))
        except Overrun:
            return Verdict(0.0, "timeout", answer[:200])
        except (Crashed, RuntimeError) as error:
            if isinstance(error, Crashed) and error.signal_number in (signal.SIGKILL, signal.SIGTERM):
                raise  # somebody else's doing, not the answer's
            return Verdict(0.0, "malformed", answer[:200])
        finally:
            scores.close()
        score = min(max(score, 0.0), 1.0)
        return Verdict(score, "pass" if score == 1.0 else "fail", answer[:200])

    def _score(self, asked: tuple[Task, str]) -> float:
        task, answer = asked
        return self._scores[task.task_type](answer, entry_of(task.prompt, task.gold_answer))

    def _confine(self) -> None:
        system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
        landlock.restrict(self._rules)
        seccomp.install(self._filter)


def extract(text: str, *, strict: bool) -> str | None:
    """The last `<answer>`, else the last box, else (unless strict) all of the text."""
    if tags := _ANSWER.findall(text):
        return tags[-1].strip()
    if (boxed := last_boxed(text)) is not None:
        return boxed.strip()
    return None if strict else text.strip()


def _readable() -> list[str]:
    """What Python and its packages are read from."""
    own = [path for path in sys.path if os.path.isdir(path) and os.path.isabs(path)]
    return [*namespaces.readable_paths(), *own]
