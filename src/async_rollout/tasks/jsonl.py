"""The task file: UTF-8, one JSON object a line.

    {"task_id": "a1", "prompt": "What is 2 + 3?", "task_type": "gsm8k", "gold_answer": "5"}

`gold_answer` (a string) or, for code, `reference_tests` (a list of strings) judges the
answer; `starter_code` is optional. Every task that is read can be judged; whatever else is
in the file is a TaskError that names file, line, problem and fix.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from async_rollout.records.files import write_text
from async_rollout.tasks.code_tests import split_test
from async_rollout.tasks.number import parse_number
from async_rollout.tasks.task import Task, TaskError, check_task_type, family

_BOM = b"\xef\xbb\xbf"
_REQUIRED = ("task_id", "prompt", "task_type")
_FIELDS = (*_REQUIRED, "gold_answer", "reference_tests", "starter_code")


def read_tasks(path: Path, limit: int | None = None) -> list[Task]:
    """All tasks of the file, or the first `limit`; the whole file is checked either way."""
    tasks: list[Task] = []
    lines: dict[str, int] = {}
    for number, row in read_objects(path):
        with line_of(path, number):
            task = task_from_row(row)
            if task.task_id in lines:
                first = lines[task.task_id]
                raise TaskError(f"task_id `{task.task_id}` is already on line {first}; give each its own")
        lines[task.task_id] = number
        tasks.append(task)
    if not tasks:
        raise TaskError(f"{path}: holds no task; write one JSON object a line")
    return tasks[:limit]


def write_tasks(path: Path, tasks: Iterable[Task]) -> None:
    """Write a file that `read_tasks` reads back as the same tasks; whole or not at all."""
    write_text(path, "".join(json.dumps(_row(task), ensure_ascii=False) + "\n" for task in tasks))


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, object) of every line that is not blank."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TaskError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    for number, line in enumerate(data.removeprefix(_BOM).split(b"\n"), 1):
        if line.strip():
            with line_of(path, number):
                row = _parse(line)
            yield number, row


def task_from_row(row: dict[str, Any]) -> Task:
    """The task that one line describes. Raises TaskError with problem and fix."""
    if unknown := [name for name in row if name not in _FIELDS]:
        raise TaskError(f"unknown field `{unknown[0]}`; the fields are {', '.join(_FIELDS)}")
    given = {name: value for name, value in row.items() if value is not None}
    if missing := [name for name in _REQUIRED if name not in given]:
        raise TaskError(f"`{missing[0]}` is missing; every task needs {', '.join(_REQUIRED)}")
    tests = given.pop("reference_tests", [])
    for name, value in given.items():
        _check_string(name, value)
    if not isinstance(tests, list):
        raise TaskError(f"`reference_tests` is {_kind(tests)}; make it a list of strings")
    for test in tests:
        _check_string("reference_tests", test)
    check_task_type(given["task_type"])
    _check_gold(given, tests)
    return Task(**given, reference_tests=tuple(tests))


def _check_string(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TaskError(f"`{name}` is {_kind(value)}; make it a string in double quotes")
    if not value.strip():
        raise TaskError(f"`{name}` is empty; fill it in or leave the field out")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise TaskError(f"`{name}` holds half of a surrogate pair; write the character itself") from None


def _check_gold(given: dict[str, str], tests: list[str]) -> None:
    kind = given["task_type"]
    if kind == "coding":
        if not tests:
            raise TaskError("`reference_tests` is missing; task_type `coding` is judged by it")
        for test in tests:
            split_test(test)
        return
    if tests:
        raise TaskError(f"`reference_tests` do not judge task_type `{kind}`; give `gold_answer` instead")
    if "gold_answer" not in given:
        raise TaskError(f"`gold_answer` is missing; task_type `{kind}` is judged by it")
    if family(kind) == "reasoning_gym" and set(_members(given["gold_answer"])) != {"answer", "metadata"}:
        raise TaskError(
            "`gold_answer` must be the JSON of the entry's answer and metadata; `prepare` writes it"
        )
    if kind == "gsm8k" and parse_number(given["gold_answer"]) is None:
        raise TaskError(f'`gold_answer` {given["gold_answer"][:80]!r} is not a number; give one, like "1250"')


def _members(text: str) -> dict[str, Any]:
    """The members of a JSON object; none if the text is no such thing."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _parse(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode(), parse_constant=_not_json, object_pairs_hook=_distinct)
    except UnicodeDecodeError as error:
        raise TaskError(f"not UTF-8 (byte {error.start + 1} of the line); save the file as UTF-8") from None
    except TaskError:
        raise
    except (ValueError, RecursionError) as error:
        raise TaskError(f"not JSON ({error}); write one JSON object on the line") from None
    if not isinstance(row, dict):
        raise TaskError(f"{_kind(row)}, not an object; write {{...}} with the fields {', '.join(_FIELDS)}")
    return row


def _not_json(constant: str) -> NoReturn:
    raise TaskError(f"{constant} is not JSON; write a string or leave the field out")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise TaskError(f"field `{twice}` is there twice; keep one")
    return row


@contextmanager
def line_of(path: Path, number: int) -> Iterator[None]:
    """Puts file and line in front of a TaskError raised inside."""
    try:
        yield
    except TaskError as error:
        raise TaskError(f"{path}:{number}: {error}") from None


def _row(task: Task) -> dict[str, Any]:
    row = {name: getattr(task, name) for name in _FIELDS}
    return {name: value for name, value in row.items() if value is not None and value != ()}


def _kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "a string"}
    names |= {list: "a list", dict: "an object", type(None): "null"}
    return names[type(value)]
