"""MATH-style answers: 1 if the last box holds the gold answer's value, however it is written.

math-verify compares, in a process that is killed when it takes too long: an answer that cannot
be compared in time is a wrong answer, and costs nothing else.
"""

import re
import signal
from functools import lru_cache

from async_rollout.killable import Crashed, Killable, Overrun
from async_rollout.tasks.boxed import last_boxed
from async_rollout.types import Verdict

MAX_LENGTH = 1000  # characters; no gold answer of MATH has more than 200
_INTEGER = re.compile(r"[+-]?[0-9]{1,100}")


class MathJudge:
    """Compares answers, each within `timeout_sec`."""

    def __init__(self, timeout_sec: float):
        from async_rollout.tasks.expression import same

        self._timeout = timeout_sec
        same(("x^2+2x+1", "(x+1)^2"))  # here, so that no process has to load it after a kill
        self._same = Killable(same)
        self._verdict = lru_cache(maxsize=8192)(self._compare)  # samples of a prompt often agree

    def __call__(self, gold: str, text: str) -> Verdict:
        """Verdict with reward 0 or 1. RuntimeError: math-verify failed on a gold that it has read before."""
        answer = last_boxed(text)
        if not (answer and answer.strip()):
            return Verdict(0.0, "no_answer")
        if len(answer) > MAX_LENGTH:
            return Verdict(0.0, "malformed", answer[:100])
        try:
            verdict = self._verdict(gold.strip(), answer.strip())
        except Overrun:  # not kept for the next such answer: the machine may have been busy
            verdict = "timeout"
        return Verdict(float(verdict == "pass"), verdict, answer.strip()[:200])

    def close(self) -> None:
        """End the comparing process."""
        self._same.close()

    def _compare(self, gold: str, answer: str) -> str:
        if gold == answer:
            return "pass"
        if _INTEGER.fullmatch(gold) and _INTEGER.fullmatch(answer):
            return "pass" if int(gold) == int(answer) else "fail"
        try:
            return "pass" if self._same((gold, answer), self._timeout) else "fail"
        except RuntimeError:
            self._same.close()  # so that the next try has a fresh process, and all of its memory
            raise
        except Crashed as error:
            if error.signal_number in (signal.SIGKILL, signal.SIGTERM):
                raise  # somebody else's doing, not the answer's
            return "malformed"
