import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.rewards.numeric import extract, judge_numeric
from async_rollout.types import Verdict


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        ("64", "In all, that makes 64 pencils."),
        ("2500", "#### 2,500"),
        ("2500", "#### 2 500"),
        ("2,500", "#### 2500"),
        ("12", "#### $12.00"),
        ("12", "He pays $12.00."),
        ("8", "#### 6\nNo, I forgot two.\n#### 8"),
        ("-3", "#### -3"),
        ("-3", "#### − 3"),
        ("9", "somewhere in 4-9"),
        ("30", "It fell by 30%."),
        ("8", "#### 8\n\nQuestion: a boat carries 31 people and 12 leave. How many"),
        ("2.25", "#### 2 1/4"),
        ("64", "<answer>64</answer>"),
        ("64", "<ANSWER>it is 64"),
        ("64", "#### **64**"),
        ("300", "Answer: 3e2"),
        ("64", r"so \boxed{64}, from 60 and 4"),
        ("64", r"\boxed{32}, better: \boxed{64 \text{ pencils}}"),
        ("64", r"\fbox{64}"),
        ("2.25", r"\boxed{\frac{9}{4}}"),
        ("-0.5", r"\boxed{-\frac{1}{2}}"),
        ("-0.5", r"\boxed{- \frac{1}{2}}"),
        ("-0.5", r"\boxed{x = -\,\frac{1}{2}}"),
        ("-1/2", r"\boxed{\frac{-1}{2}}"),
        ("1/2", r"\boxed{\frac12}"),
        ("-1/2", "#### -½"),
        ("-0.75", "so it is -¾"),
        ("-3", r"\boxed{-\,3}"),
        ("64", "####\n64"),
        ("18", "#### 3 * 6 = 18"),
        ("64", r"\boxed{1} #### 64"),
        ("64", r"<answer>1</answer> \boxed{64}"),
        ("64", "64" + "]" * 50_000),
    ],
)
def test_right_answers_pass(gold, text):
    verdict = judge_numeric(gold, text)
    assert (verdict.reward, verdict.verdict) == (1.0, "pass")
    assert len(verdict.extracted) < 30


@pytest.mark.parametrize(
    ("gold", "text", "verdict"),
    [
        ("3", "#### -3", "fail"),
        ("1", "#### 1/4", "fail"),
        ("4", "#### 1/4", "fail"),
        ("64", "64 cannot be right. It is 63.", "fail"),
        ("64", "64\n#### 63", "fail"),
        ("64", "#### 64\n#### 63", "fail"),
        ("0.3", "30%", "fail"),
        ("0.5", r"\boxed{-\frac{1}{2}}", "fail"),
        ("0.5", "#### -½", "fail"),
        ("12", r"\boxed{\frac12}", "fail"),
        ("64", "#### 640", "fail"),
        ("64", "I do not know.", "no_answer"),
        ("64", "", "no_answer"),
        ("64", "it is 64\n#### NaN", "no_answer"),
        ("64", "it is 64\n####", "no_answer"),
        ("64", r"it is 64, so \boxed{64", "no_answer"),
        ("64", r"\boxed{\text{a} {64}", "no_answer"),
        ("64", "#### 6.4.1", "malformed"),
        ("64", "#### " + "64" * 10_000, "malformed"),
        ("64", "#### 64e99999999999", "malformed"),
        ("6", "6:4", "malformed"),
    ],
)
def test_wrong_answers_fail_and_say_how(gold, text, verdict):
    judged = judge_numeric(gold, text)
    assert (judged.reward, judged.verdict) == (0.0, verdict)
    assert len(judged.extracted or "") <= 100


def test_a_gold_answer_that_is_no_number_is_our_failure():
    with pytest.raises(ValueError, match="gold answer 'many' is not a number"):
        judge_numeric("many", "#### 5")


marks = ["####", "\\boxed{", "\\frac", "\\frac{", "<answer>", "</answer>"]
pieces = st.sampled_from([*marks, *"{}=-−$ \n,./^e×½²\\x:", "10", "7", "000", "\\,", "**"])


@given(st.text() | st.lists(pieces, max_size=30).map("".join))
def test_any_text_gets_a_verdict(text):
    judged = judge_numeric("7", text)
    assert isinstance(judged, Verdict)
    assert judged.reward == float(judged.verdict == "pass")


@given(st.text(st.sampled_from("ab #1\n"), max_size=20), st.integers(-(10**9), 10**9))
def test_the_last_mark_decides(before, n):
    assert extract(f"{before}\n#### {n}\nthen 5 more").value == n


@pytest.mark.parametrize(
    "piece",
    [
        *marks,
        "\\frac12",
        "-½",
        "9",
        "1 000 ",
        "1 ",
        "1,",
        ".",
        "-",
        "$",
        "1/",
        "{",
        "1e",
        "10^",
        "1 x 10 ",
        " ",
    ],
)
def test_long_texts_take_linear_time(piece):
    started = time.process_time()
    judge_numeric("5", piece * (200_000 // len(piece)))
    judge_numeric("5", "#### " + piece * (200_000 // len(piece)))
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize("text", ["#### 64", r"\boxed{64}", "<answer>64</answer>"])
def test_strict_wants_a_mark(text):
    assert judge_numeric("64", f"5 {text}", strict=True).correct
    assert judge_numeric("64", "In all 64.", strict=True) == Verdict(0.0, "no_answer")
