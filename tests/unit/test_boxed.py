import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.tasks.boxed import last_boxed


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"so \boxed{7}.", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed {7}", "7"),
        (r"\boxed{1}, no: \boxed{2}", "2"),
        (r"\boxed{\frac{3}{4}}", r"\frac{3}{4}"),
        (r"\boxed{\left\{1, \frac{1}{2}\right\}}", r"\left\{1, \frac{1}{2}\right\}"),
        (r"\boxed{x} then {y}", "x"),
        (r"an open { and \boxed{7}", "7"),
        (r"closed } twice } and \boxed{7}", "7"),
        (r"\boxed{7} and, cut off, \boxed{8", "7"),
        (r"\boxed{outer \boxed{inner}}", "inner"),
        (r"$\boxed 9$", "9"),
        (r"$\boxed 9.$ or $\boxed{8}$", "8"),
        (r"\boxed{42", ""),
        (r"\boxed{}", ""),
        ("42", None),
        (r"a \box of 42 {}", None),
    ],
)
def test_the_last_closed_box_is_the_answer(text, content):
    assert last_boxed(text) == content


@given(st.recursive(st.sampled_from(["x", r"\pi", r"\{", " "]), lambda s: s.map(lambda t: f"{{{t}}}")))
def test_what_is_put_into_a_box_comes_out(content):
    assert last_boxed(rf"first \boxed{{0}}, then \boxed{{{content}}}; done") == content


@pytest.mark.parametrize("piece", [r"\boxed{", r"\boxed{1}", "{", "}", "\\", r"\boxed 1 "])
def test_long_texts_take_linear_time(piece):
    begun = time.process_time()
    last_boxed(piece * (400_000 // len(piece)))
    assert time.process_time() - begun < 1.0
