import math

import numpy as np
import pytest

from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.judge import RewardError, attempt, build_judge
from async_rollout.tasks.task import Task
from async_rollout.types import Verdict

SORT = Task("s1", "3210>", "sort", "#0123")
GSM8K = Task("g1", "2 + 3?", "gsm8k", "5")


judge = build_judge(RewardConfig(), ["sort", "gsm8k"])


@pytest.mark.parametrize("text", ["#0123", "#0123 ", "#0123\n"])
def test_sort_takes_the_exact_answer(text):
    assert judge(SORT, text) == Verdict(1.0, "pass", "#0123")


@pytest.mark.parametrize("text", ["0123", " #0123", "#01 23", "#0123#", "#0132", "", "#0123\n#0123"])
def test_sort_takes_nothing_else(text):
    verdict = judge(SORT, text)
    assert (verdict.reward, verdict.verdict, verdict.correct) == (0.0, "fail", False)


def test_gsm8k_is_judged_by_value():
    assert judge(GSM8K, "#### 5.0").correct
    assert not judge(GSM8K, "#### 6").correct


@pytest.mark.parametrize(
    "returned",
    [
        None,
        1.0,
        [1.0],
        Verdict(None, "pass"),
        Verdict(True, "pass"),
        Verdict(1, "pass"),
        Verdict(np.float32(1.0), "pass"),
        Verdict(math.nan, "pass"),
        Verdict(math.inf, "pass"),
    ],
)
def test_what_is_no_verdict_is_an_error_that_names_the_task_type(returned):
    with pytest.raises(RewardError, match=r"judge of `sort` returned .* for task s1; it must return"):
        attempt(lambda task, text: returned, SORT, "#0123")


def test_a_judge_that_raises_is_an_error_that_names_task_type_and_cause():
    def broken(task, text):
        raise KeyError("lost")

    with pytest.raises(RewardError, match=r"judge of `sort` failed on task s1: KeyError\('lost'\)"):
        attempt(broken, SORT, "#0123")


def test_a_gold_answer_that_cannot_be_read_is_never_a_zero():
    with pytest.raises(RewardError, match="judge of `gsm8k` failed on task g1"):
        judge(Task("g1", "2 + 3?", "gsm8k", "five"), "#### 5")


def test_a_strict_judge_takes_no_unmarked_number():
    strict = build_judge(RewardConfig(strict=True), ["gsm8k"])
    assert strict(GSM8K, "#### 5").correct
    assert strict(GSM8K, "it is 5").verdict == "no_answer"
    assert judge(GSM8K, "it is 5").correct
