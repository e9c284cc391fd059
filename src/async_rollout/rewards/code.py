"""Programs: run with the task's tests in the sandbox; the reward is the share passed, or all or nothing.

Verdicts: `pass`; the first test's that did not pass: `fail`, `runtime_error`, `timeout`,
`output_limit`, `memory_limit`; `syntax_error`; `no_code` where the answer holds no program.
A value is compared here, where the program is not. Tests that cannot be split run beside a
fresh copy of the program, and the verdict says `compared: inside`.
"""

import secrets
import time
from functools import lru_cache

from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.fenced import find_program
from async_rollout.rewards.sandbox.client import Ran, Sandbox
from async_rollout.rewards.sandbox.plain import parse, same, same_type
from async_rollout.tasks.code_tests import Compare, Inside, Test, names_asked_for, split_test
from async_rollout.tasks.task import Task
from async_rollout.types import Verdict

PASS = "pass"
MAX_PROGRAM = 100_000  # characters
_KINDS = frozenset({"fail", "runtime_error", "memory_limit", "syntax_error"})  # that a child may report
_SHOWN = 4000  # characters of the program kept in the verdict


class CodeJudge:
    """Judges programs, one at a time, in a sandbox of its own."""

    def __init__(self, config: RewardConfig):
        self._seconds = config.code_seconds
        self._all = config.code_score == "all"
        self.sandbox = Sandbox(
            config.sandbox, memory_mb=config.code_memory_mb, output_kb=config.code_output_kb
        )
        self._tests = lru_cache(maxsize=65536)(lambda sources: tuple(map(split_test, sources)))
        self._names = lru_cache(maxsize=65536)(names_asked_for)

    def __call__(self, task: Task, text: str) -> Verdict:
        """The verdict on an answer. Raises SandboxError if the sandbox itself fails."""
        program = find_program(text, self._names(task.reference_tests, task.starter_code), task.starter_code)
        if program is None or len(program) > MAX_PROGRAM:
            return Verdict(0.0, "no_code")
        tests = self._tests(task.reference_tests)
        results = self._results(program, tests)
        passed = results.count(PASS)
        score = float(passed == len(tests)) if self._all else passed / len(tests)
        verdict = next((result for result in results if result != PASS), PASS)
        inside = "inside" if any(isinstance(test, Inside) for test in tests) else None
        return Verdict(score, verdict, program[:_SHOWN], compared=inside)

    def close(self) -> None:
        """End the sandbox."""
        self.sandbox.close()

    def _results(self, program: str, tests: tuple[Test, ...]) -> list[str]:
        """`pass`, or why not, of every test; all share the time."""
        deadline = time.monotonic() + self._seconds
        results: list[str | None] = [None] * len(tests)
        compared = [i for i, test in enumerate(tests) if isinstance(test, Compare)]
        while compared:
            found, loaded = self._run(program, [tests[i] for i in compared], deadline)
            if not loaded:
                return found * len(tests)
            for i, result in zip(compared, found, strict=False):
                results[i] = result
            del compared[: len(found)]
        for i, test in enumerate(tests):
            if isinstance(test, Inside):
                found, loaded = self._run(program, [test], deadline)
                if not loaded:
                    return found * len(tests)
                results[i] = found[0]
        return results

    def _run(self, program: str, tests: list[Test], deadline: float) -> tuple[list[str], bool]:
        """(results of the tests up to one that ended the process; of the program, if it did not load)."""
        left = deadline - time.monotonic()
        if left <= 0:
            return ["timeout"] * len(tests), True
        word = secrets.token_hex(16)
        ran = self.sandbox.run(program, [_step(test) for test in tests], seconds=left, word=word)
        lines = [parse(line) for line in ran.lines[: len(tests) + 1]]
        if not lines or lines[0] != {}:
            return [_kind(lines[0]) if lines else _ended(ran)], False
        results = [_result(test, line, word) for test, line in zip(tests, lines[1:], strict=False)]
        if len(results) < len(tests):
            results.append(_ended(ran))
        elif ran.end != "exited":  # it went on after all was said: what was said last is not believed
            results[-1] = _ended(ran)
        return results, True


def _step(test: Test) -> dict[str, str]:
    if isinstance(test, Inside):
        return {"test": test.source}
    return {"setup": test.setup, "expression": test.expression}


def _result(test: Test, line: object, word: str) -> str:
    if isinstance(test, Inside):
        passed = isinstance(line, dict) and line.get("word") == word
    else:
        alike = same_type if test.identical else same
        passed = isinstance(line, dict) and "value" in line and alike(test.expected, line["value"])
    return PASS if passed else _kind(line)


def _kind(line: object) -> str:
    """Why a line is no success; what no child of ours writes is a wrong answer."""
    kind = line.get("error") if isinstance(line, dict) else None
    return kind if isinstance(kind, str) and kind in _KINDS else "fail"


def _ended(ran: Ran) -> str:
    """Why a process ended before it had reported all."""
    if ran.end in ("timeout", "output_limit"):
        return ran.end
    return "memory_limit" if ran.end == "signal 9" else "runtime_error"
