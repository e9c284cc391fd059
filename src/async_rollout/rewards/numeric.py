"""GSM8K-style answers: 1 if the number given as the answer has exactly the gold value.

Where the answer stands, first that is there: after the last `####`, in the last `\\boxed{}`, in
the last `<answer>`, else (unless strict) the last number of the text. A place that is marked but holds no
number is a wrong answer; the rest of the text is then not searched for one.
"""

import re
from functools import lru_cache

from async_rollout.tasks.boxed import last_boxed
from async_rollout.tasks.number import Numeral, first_number, last_number, parse_number
from async_rollout.types import Verdict

_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.IGNORECASE | re.DOTALL)

_gold = lru_cache(maxsize=65536)(parse_number)


def judge_numeric(gold: str, text: str, *, strict: bool = False) -> Verdict:
    """Verdict with reward 0 or 1; `strict`: an answer that is not marked is none.

    Raises ValueError if the gold answer is not one number.
    """
    right = _gold(gold)
    if right is None:
        raise ValueError(f"gold answer {gold[:80]!r} is not a number")
    answer = extract(text, strict=strict)
    if answer is None:
        return Verdict(0.0, "no_answer")
    written = answer.text[:100]
    if answer.value is None:
        return Verdict(0.0, "malformed", written)
    correct = answer.value == right
    return Verdict(float(correct), "pass" if correct else "fail", written)


def extract(text: str, *, strict: bool = False) -> Numeral | None:
    """The number that the text gives as its answer; None if it gives none."""
    if "####" in text:
        line = text[text.rindex("####") + 4 :].lstrip().split("\n", 1)[0]
        return _stated(line)
    if (boxed := last_boxed(text)) is not None:
        return _stated(boxed)
    if tags := _ANSWER.findall(text):
        return last_number(tags[-1])
    return None if strict else last_number(text)


def _stated(answer: str) -> Numeral | None:
    """The number in a short statement: what follows its last `=`, and there the first."""
    return first_number(answer.rpartition("=")[2])
