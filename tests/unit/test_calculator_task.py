"""The calculator: what it observes, which tasks there are, and what is demonstrated."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.config.model import WarmStartConfig
from async_rollout.config.reward import RewardConfig
from async_rollout.learner.warm_start import pieces, warm_start
from async_rollout.rewards.judge import build_judge
from async_rollout.tasks import calculator


@pytest.mark.parametrize(
    ("response", "observation"),
    [
        ("[17*24]", "408;"),
        ("so [17*24]408;[408+9]", "417;"),
        ("[3-12]", "-9;"),
        ("[007+1]\n", "8;"),
        ("[999999*999999]", "999998000001;"),
        ("[1000000*2]", "?;"),  # too long to be a number here
        ("[17*24+9]", "?;"),
        ("[17*]", "?;"),
        ("[]", "?;"),
        ("[__import__('os')]", "?;"),
        ("[[1+1]", "2;"),
        ("[1+1]2;]", "?;"),
        ("17*24]", None),
        ("[17*24", None),
        ("[17*24]408;", None),
        ("", None),
    ],
)
def test_observations(response, observation):
    assert calculator.observe(response) == observation


@given(st.text())
def test_any_text_is_observed_as_a_short_line_or_not_at_all(text):
    observed = calculator.observe(text)
    assert observed is None or re.fullmatch(r"(-?[0-9]{1,12}|\?);", observed)


@pytest.mark.parametrize(
    ("response", "reward", "extracted"),
    [
        ("[17*24]408;[408+9]417;#417", 1.0, "417"),
        ("#417", 1.0, "417"),
        ("#417 \n", 1.0, "417"),
        ("#0417", 0.0, "0417"),
        ("[408+9]417;", 0.0, None),  # an observation is no answer
        ("417", 0.0, None),
        ("#417.", 0.0, None),
        ("#416#417", 1.0, "417"),
        ("", 0.0, None),
    ],
)
def test_rewards(response, reward, extracted):
    task = calculator.Task("t", "17*24+9=", "calculator", "417")
    verdict = build_judge(RewardConfig(), ["calculator"])(task, response)
    assert (verdict.reward, verdict.correct, verdict.extracted) == (reward, reward == 1, extracted)


def test_tasks_are_distinct_and_their_answers_right():
    train, held_out = calculator.generate(500, 100, seed=3)
    prompts = [t.prompt for t in (*train, *held_out)]
    assert len(set(prompts)) == 600
    for task in (*train, *held_out):
        left, right, sign, rest = re.fullmatch(r"(\d+)\*(\d+)([+-])(\d)=", task.prompt).groups()
        assert int(task.gold_answer) == int(left) * int(right) + int(sign + rest)
    larger = calculator.generate(700, 120, seed=3)
    assert larger[0][:500] == train
    assert larger[1][:100] == held_out


def test_no_eval_prompt_is_trained_or_demonstrated_under_any_seed():
    held_out = {t.prompt for seed in range(3) for t in calculator.generate(1, 300, seed)[1]}
    train = {t.prompt for t in calculator.generate(3000, 1, seed=9)[0]}
    shown = {d.prompt for d in calculator.demonstrations(np.random.default_rng(0), 3000, 0.25, 0.3)}
    assert not held_out & (train | shown)


def test_demonstrations_are_marked_and_corrupted_as_often_as_asked():
    shown = calculator.demonstrations(np.random.default_rng(5), 4000, marked_share=0.25, corrupted_share=0.3)
    assert np.mean([d.turns[-1].startswith("#") for d in shown]) == pytest.approx(0.25, abs=0.03)
    right = [
        [t.removeprefix("#") for t in d.turns]
        == [t.removeprefix("#") for t in calculator.solution(d.prompt[:-1])]
        for d in shown
    ]
    assert 1 - np.mean(right) == pytest.approx(0.3, abs=0.03)
    assert calculator.demonstrations(np.random.default_rng(5), 9, 0.25, 0.3) == shown[:9]


def test_a_mistake_is_one_digit_and_later_turns_go_on_from_it():
    for shown in calculator.demonstrations(np.random.default_rng(6), 300, 1.0, 1.0):
        text = "".join(text for text, _ in pieces(shown, "calculator"))
        prompt, first, product, second, total, answer = re.fullmatch(
            r"(.*)=\[(.*)\](\d+);\[(.*)\](\d+);#(\d+)", text
        ).groups()
        right = calculator.solution(prompt)
        wanted = re.match(r"\d+", second)[0] == product, answer == total, first == right[0][1:-1]
        sum_kept = second.endswith(re.search(r"[+-]\d$", prompt)[0])
        assert sum([*wanted, sum_kept]) == 3  # exactly one of the four places is wrong


def test_the_model_is_taught_what_it_writes_and_not_what_it_is_told():
    shown = calculator.Demonstration("17*24+9=", ("[17*24]", "[408+9]", "#417"))
    parts = pieces(shown, "calculator")
    assert [text for text, own in parts if own] == list(shown.turns)
    assert "".join(text for text, _ in parts) == "17*24+9=[17*24]408;[408+9]417;#417"


def test_the_embedded_model_is_built_for_it(tmp_path):
    result = warm_start(WarmStartConfig(steps=2, batch=8).on("calculator"), tmp_path / "model")
    assert json.loads((tmp_path / "model/warm_start.json").read_text()) == result
    assert result["warm_start"]["task"] == "calculator"
    assert result["held_out"] == 256
    assert result["pass_rate_sampled"] == 0
