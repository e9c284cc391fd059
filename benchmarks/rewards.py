"""Claim: two reward workers judge at least 200 programs a second on two cores, sandboxed.

The programs are those of our coding problems, right and wrong ones, each with its four tests,
judged as in a run: by a reward pool of two workers, each with a sandbox of its own. Beside it
stands a plain `subprocess.run` of Python for each program, two at a time, which isolates
nothing and believes the exit code. Numeric and MATH answers are judged in one process; every
text is different, so that nothing is remembered, and MATH answers are compared by math-verify.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from async_rollout.channels import poll
from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.math import MathJudge
from async_rollout.rewards.numeric import judge_numeric
from async_rollout.rewards.pool import RewardPool
from async_rollout.tasks.coding import HELD_OUT, TRAIN
from async_rollout.tasks.jsonl import write_tasks
from async_rollout.tasks.task import Task
from measure import Claim, in_turn, options, report, spread

WORKERS = 2
AIM = 200.0
GOLDS = ("\\frac{1}{2}", "x^2+2x+1", "[2,5)", "\\sqrt{8}", "12", "3\\frac{1}{2}", "\\text{Monday}", "(3,4)")


def answers(n: int) -> list[tuple[Task, str]]:
    """n programs with their tasks, right and wrong ones in turn."""
    pairs = [
        (problem.task(), f"```python\n{program}\n```")
        for right in (True, False)
        for problem in TRAIN + HELD_OUT
        for program in problem.programs(right=right)
    ]
    return [pairs[i % len(pairs)] for i in range(n)]


def with_pool(pool: RewardPool, wanted: list[tuple[Task, str]]) -> float:
    """Programs judged a second."""
    begun = time.perf_counter()
    for i, (task, text) in enumerate(wanted):
        pool.submit(i, task.task_id, text)
    done = 0
    while done < len(wanted):
        verdicts = pool.poll()
        if failed := [v for _, v in verdicts if v.infrastructure]:
            raise RuntimeError(failed[0].extracted)
        done += len(verdicts)
        poll(pool.waitables(), min(pool.patience(), 0.05))
    return len(wanted) / (time.perf_counter() - begun)


def with_subprocesses(wanted: list[tuple[Task, str]]) -> float:
    """Programs run a second, each by a Python of its own with the tests at its end."""

    def run(answer: tuple[Task, str]) -> int:
        task, text = answer
        source = "\n".join([text.removeprefix("```python\n").removesuffix("\n```"), *task.reference_tests])
        return subprocess.run([sys.executable, "-I", "-S", "-c", source], capture_output=True).returncode

    begun = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(run, wanted))
    return len(wanted) / (time.perf_counter() - begun)


def rate(judge: Callable[[int], object], n: int) -> float:
    """Answers a second."""
    begun = time.perf_counter()
    for i in range(n):
        judge(i)
    return n / (time.perf_counter() - begun)


def main(arguments: list[str]) -> int:
    """Print what was measured, and the claim's line last."""
    settings = options(__doc__, arguments)
    programs, numbers, formulas, repeats = (150, 5000, 60, 3) if settings.quick else (600, 20000, 300, 5)
    wanted = answers(programs)
    with tempfile.TemporaryDirectory() as directory:
        tasks = Path(directory) / "tasks.jsonl"
        write_tasks(tasks, [problem.task() for problem in TRAIN + HELD_OUT])
        with closing(RewardPool([tasks], RewardConfig(workers=WORKERS))) as pool:
            pool.start()
            pool.wait_ready(60)
            code = in_turn(
                {
                    "sandbox": lambda: with_pool(pool, wanted),
                    "subprocess": lambda: with_subprocesses(wanted[: programs // 3]),
                },
                repeats,
            )
    with closing(MathJudge(3.0)) as math_judge:
        started = iter(range(10**9))
        other = in_turn(
            {
                "numeric": lambda: rate(
                    lambda i: judge_numeric("1250", f"In all {i} boxes, so\n#### $1,25{i % 9}.00"), numbers
                ),
                "math": lambda: rate(
                    lambda i: math_judge(
                        GOLDS[i % len(GOLDS)],
                        f"\\boxed{{{next(started)} + {GOLDS[i // 8 % len(GOLDS)]}}}",
                    ),
                    formulas,
                ),
            },
            repeats,
        )
    print(f"code, {WORKERS} workers, sandboxed: {spread(code['sandbox'])} programs/s")
    print(f"code, {WORKERS} at a time, subprocess.run: {spread(code['subprocess'])} programs/s")
    print(f"numeric, one process: {spread(other['numeric'])} answers/s")
    print(f"MATH, one process, none remembered: {spread(other['math'])} answers/s")
    claim = Claim(
        f"sandboxed programs judged a second by {WORKERS} workers", statistics.median(code["sandbox"]), AIM
    )
    return report(settings, [claim], code | other)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
