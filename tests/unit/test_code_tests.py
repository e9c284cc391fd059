import pytest

from async_rollout.tasks.code_tests import Compare, Inside, names_asked_for, split_test
from async_rollout.tasks.task import TaskError


@pytest.mark.parametrize(
    ("source", "expression", "expected"),
    [
        ("assert f(3) == 4", "f(3)", 4),
        ("assert 4 == f(3)", "f(3)", 4),
        ("assert f(3) == -4, 'a message'", "f(3)", -4),
        ("assert sorted(f([2, 1])) == [1, 2]", "sorted(f([2, 1]))", [1, 2]),
        ("assert Box(2).volume() == 8.0", "Box(2).volume()", 8.0),
        ("assert f() == {'a': (1, {2})}", "f()", {"a": (1, {2})}),
        ("assert f() == set()", "f()", set()),
    ],
)
def test_a_call_and_a_literal_are_split(source, expression, expected):
    assert split_test(source) == Compare("", expression, expected, False)


def test_identity_with_a_constant_is_split():
    assert split_test("assert f(3) is None") == Compare("", "f(3)", None, True)
    assert split_test("assert f(3) is True") == Compare("", "f(3)", True, True)


def test_what_stands_before_is_set_up():
    split = split_test("x = [3, 1]\nf(x)\nassert x == [1, 3]")
    assert split == Compare("x = [3, 1]\nf(x)", "x", [1, 3], False)


@pytest.mark.parametrize(
    "source",
    [
        "assert f(3)",
        "assert abs(f(3) - 0.1) < 1e-6",
        "assert f(3) != 4",
        "assert f(3) == g(3)",
        "assert 1 < f(3) == 4",
        "assert f(3) is 4",
        "assert f(1) == 1\nassert f(2) == 2",
        "for n in range(3):\n    assert f(n) == n",
        "assert f(2) == float('inf')",
        "assert 1 == 1",
    ],
)
def test_any_other_test_is_decided_inside(source):
    assert split_test(source) == Inside(source)


@pytest.mark.parametrize(("source", "problem"), [("assert f(", "is not Python"), ("f(3)", "asserts nothing")])
def test_what_tests_nothing_is_refused(source, problem):
    with pytest.raises(TaskError, match=problem):
        split_test(source)


@pytest.mark.parametrize(
    ("tests", "starter", "names"),
    [
        (["assert f(1) == 2"], None, ["f"]),
        (["assert f(1) == 2"], "def g(x):", ["g"]),
        (["assert f(1) == 2"], "import math\n\ndef g(x):\n    '''doc'''\n", ["g"]),
        (["assert f(1) == 2"], "import math", ["f"]),
        (["import math\nassert math.isclose(area(1), 3.1)"], None, ["area"]),
        (["x = Box()\nassert x.size([y for y in 'ab']) == len('ab')"], None, ["Box"]),
        (["assert list(map(lambda q: f(q), [1])) == [g()]"], None, ["f", "g"]),
        (["assert 1 == 1"], None, []),
    ],
)
def test_what_a_program_has_to_define(tests, starter, names):
    assert sorted(names_asked_for(tuple(tests), starter)) == names
