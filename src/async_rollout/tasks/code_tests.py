"""Tests of a code task, split into what a program is asked and what its answer must be.

`assert CALL == LITERAL` (either way round, or `is None`, `is True`, `is False`), perhaps after
other statements, is a `Compare`: the literal never goes where the program runs. Any other test
is `Inside`: it can only be decided beside the program.
"""

import ast
import builtins
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from async_rollout.tasks.task import TaskError


@dataclass(frozen=True, slots=True)
class Compare:
    """The value of `expression`, after `setup`, must equal `expected`."""

    setup: str
    expression: str
    expected: Any
    identical: bool  # compared with `is`


@dataclass(frozen=True, slots=True)
class Inside:
    """The source must run without an exception."""

    source: str


Test = Compare | Inside


def split_test(source: str) -> Test:
    """One reference test. Raises TaskError if it is no Python that asserts something."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError) as error:
        raise TaskError(
            f"`reference_tests`: {source[:80]!r} is not Python ({error}); write `assert ...`"
        ) from None
    asserts = [node for node in ast.walk(ast.Module(body, [])) if isinstance(node, ast.Assert)]
    if not asserts:
        raise TaskError(f"`reference_tests`: {source[:80]!r} asserts nothing; write `assert CALL == VALUE`")
    last = body[-1]
    if len(asserts) > 1 or not isinstance(last, ast.Assert) or not isinstance(last.test, ast.Compare):
        return Inside(source)
    sides = [last.test.left, *last.test.comparators]
    literal = [_is_literal(side) for side in sides]
    if len(sides) != 2 or literal[0] == literal[1]:
        return Inside(source)
    expected = ast.literal_eval(sides[literal.index(True)])
    identical = isinstance(last.test.ops[0], ast.Is)
    if not isinstance(last.test.ops[0], ast.Eq) and not (
        identical and (expected is None or expected in (True, False))
    ):
        return Inside(source)
    setup = ast.unparse(ast.Module(body[:-1], []))
    return Compare(setup, ast.unparse(sides[literal.index(False)]), expected, identical)


def names_asked_for(tests: Iterable[str], starter: str | None) -> list[str]:
    """What a program must define: what the starter code does, else what the tests use and do not define."""
    if starter and (names := _definitions(starter)):
        return names
    used: dict[str, None] = {}
    for source in tests:
        tree = ast.parse(source)
        stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        stored |= {
            (a.asname or a.name).partition(".")[0]
            for n in ast.walk(tree)
            if isinstance(n, _IMPORTS)
            for a in n.names
        }
        stored |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
        loaded = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        used |= dict.fromkeys(n for n in loaded if n not in stored and not hasattr(builtins, n))
    return list(used)


_IMPORTS = (ast.Import, ast.ImportFrom)


def _definitions(starter: str) -> list[str]:
    try:
        body = ast.parse(starter).body
    except SyntaxError:
        try:
            body = ast.parse(f"{starter.rstrip()} pass").body  # `def f(x):` alone
        except SyntaxError:
            return []
    return [
        node.name for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return False
    return True
