"""Values as plain data: what a program returns, written as JSON where it runs and compared where it does not.

Only the content of built-in types travels. So an object whose `__eq__` is always true is no
value at all, and a subclass of a built-in type is what it contains.
"""

import json
from typing import Any

_DEEPEST = 100
_LARGEST_SET = 1000  # inside of another value: sets can be made slow to build
_MANY_DIGITS = 1000
_TAGS = ((list, "l"), (tuple, "t"), (set, "s"), (frozenset, "z"))


class NotPlain(Exception):
    """The value is no plain data."""


def encode(value: Any, depth: int = 0, *, of: Any = type, sub: Any = issubclass) -> Any:
    """The value as JSON data: scalars as they are, else {tag: content}. Raises NotPlain."""
    kind = of(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value
    if kind is int:
        return value if value.bit_length() < 3 * _MANY_DIGITS else {"i": hex(value)}
    if depth > _DEEPEST:
        raise NotPlain("nested too deeply")
    for base, tag in _TAGS:
        if sub(kind, base):
            return {tag: [encode(item, depth + 1) for item in base.__iter__(value)]}
    if sub(kind, dict):
        return {"d": [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in dict.items(value)]}
    if sub(kind, int):
        return encode(int.__index__(value), depth + 1)
    if sub(kind, float):
        return float.__float__(value)
    if sub(kind, str):
        return str.__str__(value)
    if sub(kind, (bytes, bytearray)):
        return {"b": (bytes if sub(kind, bytes) else bytearray).hex(value)}
    if kind is complex:
        return {"c": [value.real, value.imag]}
    raise NotPlain(kind.__name__)


def same(expected: Any, data: Any) -> bool:
    """Whether `data`, as `encode` writes it, is a value equal to `expected`, a literal.

    Costs no more than the literal does, whatever the data. Data that `encode` never writes is
    equal to nothing.
    """
    try:
        return _same(expected, data)
    except (TypeError, ValueError, KeyError, RecursionError, OverflowError):
        return False


def same_type(expected: Any, data: Any) -> bool:
    """`same`, and of the same type: for None, True and False, what `is` asks."""
    return type(expected) is type(data) and same(expected, data)


def parse(line: bytes) -> Any:
    """JSON data of one line; None if it is none."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _same(expected: Any, data: Any) -> bool:
    for base, tag in _TAGS:
        if type(expected) is base:
            items = data[tag] if type(data) is dict and len(data) == 1 and tag in data else None
            if type(items) is not list or len(items) != len(expected):
                return _sets_alike(expected, data)
            if base in (list, tuple):
                return all(map(_same, expected, items))
            return {decode(item) for item in items} == expected
    if type(expected) is dict:
        items = data["d"] if type(data) is dict and "d" in data else None
        if type(items) is not list or len(items) != len(expected):
            return False
        found = {decode(k): v for k, v in items}
        return len(found) == len(expected) and all(
            k in found and _same(expected[k], found[k]) for k in expected
        )
    value = decode(data)
    return type(value) is not tuple and bool(expected == value)


def _sets_alike(expected: Any, data: Any) -> bool:
    """A set equals a frozenset of the same elements, and the other way round."""
    other = {set: "z", frozenset: "s"}.get(type(expected))
    if other is None or type(data) is not dict or type(data.get(other)) is not list:
        return False
    return len(data[other]) == len(expected) and {decode(item) for item in data[other]} == expected


def decode(data: Any) -> Any:
    """The value that the data describes; sets in it are limited. Raises ValueError, TypeError or KeyError."""
    if type(data) is not dict:
        if type(data) is list:
            raise TypeError("a bare list is no value")
        return data
    ((tag, content),) = data.items()
    match tag:
        case "i":
            return int(content, 16)
        case "b":
            return bytes.fromhex(content)
        case "c":
            return complex(*content)
        case "l":
            return [decode(item) for item in content]
        case "t":
            return tuple(decode(item) for item in content)
        case "s" | "z" if len(content) <= _LARGEST_SET:
            return frozenset(decode(item) for item in content)
        case "d" if len(content) <= _LARGEST_SET:
            return {decode(k): decode(v) for k, v in content}
    raise ValueError(f"no value: {tag}")
