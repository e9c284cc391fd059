import json
from collections import Counter, OrderedDict, namedtuple
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.rewards.sandbox.plain import NotPlain, encode, parse, same, same_type

Point = namedtuple("Point", "x y")


class Color(IntEnum):
    RED = 2


class Yes(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class Yeses(list):
    def __eq__(self, other):
        return True


def sent(value):
    """As it arrives: through JSON."""
    return parse(json.dumps(encode(value)).encode())


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
keys = st.integers() | st.text() | st.tuples(st.integers(), st.text())
values = st.recursive(
    scalars | st.complex_numbers(allow_nan=False) | st.frozensets(keys) | st.sets(keys),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(keys, inner),
    max_leaves=12,
)


@given(values)
def test_a_value_is_the_same_as_itself(value):
    assert same(value, sent(value))


@given(values, values)
def test_values_are_the_same_exactly_if_python_says_so(one, other):
    assert same(one, sent(other)) == (one == other)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (2, 2.0),
        (1, True),
        (10**3000, 10**3000),
        ([1, 2], Yeses([1, 2])),
        ({"a": 2}, Counter("aa")),
        ({1: 2}, OrderedDict({1: 2})),
        ((1, 2), Point(1, 2)),
        (2, Color.RED),
        ({1, 2}, frozenset({1, 2})),
        (b"a", bytearray(b"a")),
        ({1: [{2: (3,)}]}, {1: [{2: (3,)}]}),
    ],
)
def test_equal_content_of_built_in_types_is_the_same(literal, value):
    assert same(literal, sent(value))


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (2, Yes(0)),
        ([1], Yeses()),
        ([1], (1,)),
        ((1,), [1]),
        ([], ()),
        ({}, set()),
        (0, None),
        ("1", 1),
    ],
)
def test_other_content_is_not(literal, value):
    assert not same(literal, sent(value))


@pytest.mark.parametrize("value", [object(), len, iter([]), range(3), {1: object()}, [Yes], type])
def test_what_is_no_plain_data_has_no_value(value):
    with pytest.raises(NotPlain):
        encode(value)


def test_a_value_that_holds_itself_has_none():
    value = []
    value.append(value)
    with pytest.raises(NotPlain, match="deep"):
        encode(value)


def test_identity_is_of_type_too():
    assert same_type(True, sent(True))
    assert not same_type(True, sent(1))
    assert same_type(None, sent(None))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[1]",
        b"{}",
        b'{"s": 3}',
        b'{"d": [[1]]}',
        b'{"l": {"l": 1}}',
        b'{"i": "xyz"}',
        b'{"c": 5}',
        b'{"x": 1, "y": 2}',
        b"[" * 100_000,
        b'{"l": [' * 5000 + b"]}" * 5000,
        b"\xff",
        b"9" * 10_000,
        b'{"s": [{"d": []}]}',
    ],
)
@pytest.mark.parametrize("literal", [2, "a", [1], {1}, {1: 2}, (), 1.5])
def test_data_that_nobody_sends_equals_nothing(line, literal):
    assert not same(literal, parse(line))


def test_sets_that_are_slow_to_build_are_not_built():
    colliding = {"s": [n * (2**61 - 1) for n in range(1, 100_000)]}
    assert not same({1, 2}, colliding)
    assert not same({1: 2}, {"d": [[n * (2**61 - 1), 0] for n in range(1, 100_000)]})
    assert not same([1], {"l": [colliding]})
