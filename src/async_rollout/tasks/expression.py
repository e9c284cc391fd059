"""Mathematical answers as MATH writes them, compared by value with math-verify.

Nothing here bounds its time or memory: an answer may hold `9^{9^{9^9}}`. Call it in a process
that can be killed (killable.py). math-verify's own limits are alarm signals, which work in a main
thread only, and stay off.
"""

import logging
from functools import lru_cache

from math_verify import LatexExtractionConfig, parse, verify

# It warns once per process that its own time limit is off.
logging.getLogger("math_verify").setLevel(logging.CRITICAL)

_WHERE = [LatexExtractionConfig(boxed_match_priority=0)]


def readable(latex: str) -> bool:
    """True if the answer can be compared by value, and so can be a gold answer."""
    return _has_value(_read(latex))


def same(answers: tuple[str, str]) -> bool:
    """True if (gold, answer) are the same value. Raises ValueError if the gold answer cannot be read."""
    gold, answer = answers
    return verify(_gold(gold), _read(answer), timeout_seconds=None)


@lru_cache(maxsize=4096)
def _gold(latex: str) -> list:
    reading = _read(latex)
    if not _has_value(reading):  # math-verify swallows its own failures, lack of memory among them
        raise ValueError(f"math-verify cannot read the gold answer {latex[:80]!r}")
    return reading


def _has_value(reading: list) -> bool:
    return any(not isinstance(value, str) for value in reading)


def _read(latex: str) -> list:
    """SymPy's reading, and the text as math-verify normalizes it; empty if there is no reading."""
    return parse(f"\\boxed{{{latex}}}", extraction_config=_WHERE, parsing_timeout=None)
