"""The coding problems, their programs, and how programs are rewarded."""

import numpy as np
import pytest

from async_rollout.config.data import DataConfig
from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.code import CodeJudge
from async_rollout.rewards.judge import build_judge
from async_rollout.tasks.code_tests import Compare, split_test
from async_rollout.tasks.coding import HELD_OUT, TRAIN, demonstrations
from async_rollout.tasks.jsonl import read_tasks, task_from_row, write_tasks
from async_rollout.tasks.sources import load_source
from async_rollout.tasks.task import Task, TaskError

PROBLEMS = TRAIN + HELD_OUT
HALF = Task(
    "t", "?", "coding", None, ("assert f(1) == 2", "assert f(2) == 3", "assert f(3) == 6", "assert f(4) == 8")
)
TWICE = "```\ndef f(x):\n    return 2 * x\n```"


@pytest.fixture(scope="module")
def judge():
    made = CodeJudge(RewardConfig(code_timeout_sec=1.0))
    yield made
    made.close()


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_right_programs_pass_every_test_and_wrong_ones_do_not(judge, problem):
    task = problem.task()
    for program in problem.programs(right=True):
        assert judge(task, program).verdict == "pass"
        assert judge(task, f"```python\n{program}\n```").reward == 1.0
    for program in problem.programs(right=False):
        assert judge(task, program).reward < 1.0
    assert all(isinstance(split_test(test), Compare) for test in task.reference_tests)


def test_there_are_twelve_and_six_and_no_name_or_prompt_is_in_both():
    source = load_source("coding", DataConfig())
    assert (len(source.train), len(source.held_out)) == (12, 6)
    assert len({task.task_id for task in source.train + source.held_out}) == 18
    assert not {t.prompt for t in source.train} & {t.prompt for t in source.held_out}
    assert all(task.starter_code and len(task.reference_tests) >= 4 for task in source.train)
    small = load_source("coding", DataConfig(seed=1, train_size=3, eval_size=2))
    assert (len(small.train), len(small.held_out)) == (3, 2)


def test_demonstrations_are_of_training_tasks_with_the_share_of_wrong_ones_that_is_asked_for():
    pairs = demonstrations(np.random.default_rng(0), 400, wrong_share=0.25)
    right = {program for problem in TRAIN for program in problem.programs(right=True)}
    assert 0.15 < sum(program not in right for _, program in pairs) / 400 < 0.35
    assert {task.task_id for task, _ in pairs} == {problem.task().task_id for problem in TRAIN}


def test_the_reward_is_the_share_of_tests_or_all_or_nothing(judge):
    verdict = judge(HALF, TWICE)
    assert (verdict.reward, verdict.verdict) == (0.75, "fail")
    strict = CodeJudge(RewardConfig(code_score="all"))
    assert strict(HALF, TWICE).reward == 0.0
    strict.close()


@pytest.mark.parametrize(
    ("program", "verdict", "reward"),
    [
        ("def f(x):\n    return {1: 2, 2: 3, 3: 6}[x]", "runtime_error", 0.75),
        (
            "import os\ndef f(x):\n    if x == 2:\n        os._exit(0)\n    return 2 * x",
            "runtime_error",
            0.75,
        ),
        ("def f(x):\n    while x == 4:\n        pass\n    return [0, 2, 3, 6][x]", "timeout", 0.75),
        ("def f(x):\n    while x == 1:\n        pass\n    return [0, 2, 3, 6, 8][x]", "timeout", 0.0),
        ("def f(x):\n    return bytearray(1 << 40) if x == 1 else [0, 2, 3, 6, 8][x]", "memory_limit", 0.75),
        ("def f(x)\n    return x", "syntax_error", 0.0),
        ("def f(x):\n    return x\n1 / 0", "runtime_error", 0.0),
        ("def f(x):\n    return input()", "runtime_error", 0.0),
        ("def g(x):\n    return x", "no_code", 0.0),
    ],
)
def test_one_test_costs_no_other_but_what_time_it_takes(judge, program, verdict, reward):
    judged = judge(HALF, f"```python\n{program}\n```")
    assert (judged.verdict, judged.reward) == (verdict, reward)


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nsys.stdout = None\ndef f(x):\n    return x + 1",
        "import atexit\natexit.register(print, 'bye')\ndef f(x):\n    print('at work')\n    return x + 1",
        "import dataclasses\n@dataclasses.dataclass\nclass A:\n    n: int\ndef f(x):\n    return A(x).n + 1",
        "def f(x):\n    return x + 1\nif __name__ == '__main__':\n    print(f(int(input())))",
        "import functools\n@functools.lru_cache\ndef f(x):\n    return 2 * x if x else x",
        "import tempfile, os\ndef f(x):\n    return x + 1",
        "import builtins\nbuiltins.AssertionError = ValueError\ndef f(x):\n    return x + 1",
    ],
)
@pytest.mark.parametrize("test", ["assert f(1) == 2", "assert f(1) > f(0)"], ids=["compared", "inside"])
def test_unusual_but_right_programs_pass(judge, program, test):
    verdict = judge(Task("t", "?", "coding", None, (test,)), program)
    assert (verdict.verdict, verdict.compared) == ("pass", None if "==" in test else "inside")


def test_tests_that_are_decided_inside_can_fail_and_do_not_see_one_another(judge):
    counts = "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n"
    task = Task("t", "?", "coding", None, ("assert f(0) != 2", "assert f(0) != 2", "assert f(0) > 5"))
    verdict = judge(task, counts)
    assert (verdict.reward, verdict.verdict, verdict.compared) == (2 / 3, "fail", "inside")


def test_a_call_returns_before_it_is_compared_with_its_exact_type(judge):
    task = Task("t", "?", "coding", None, ("assert f(0) is True",))
    assert judge(task, "def f(x):\n    return True").correct
    assert not judge(task, "def f(x):\n    return 1").correct


def test_code_tasks_are_read_from_files_and_need_tests(tmp_path):
    tasks = [problem.task() for problem in PROBLEMS]
    write_tasks(tmp_path / "tasks.jsonl", tasks)
    assert read_tasks(tmp_path / "tasks.jsonl") == tasks
    row = {"task_id": "a", "prompt": "p", "task_type": "coding"}
    for more, problem in (
        ({}, "`reference_tests` is missing"),
        ({"reference_tests": ["f(1)"]}, "asserts nothing"),
        ({"reference_tests": ["assert f("]}, "is not Python"),
    ):
        with pytest.raises(TaskError, match=problem):
            task_from_row({**row, **more})


def test_the_sandbox_that_is_used_is_named(capfd):
    judge = build_judge(RewardConfig(), ["coding"])
    assert judge(HALF, TWICE).reward == 0.75
    assert "[reward] programs run " in capfd.readouterr().err
