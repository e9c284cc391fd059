"""What is wrong with a configuration, told so that it can be put right.

Each problem names the dotted key, the value, what is wrong with it, and the fix. The
command line prints the message of a `ConfigError` and exits with code 2.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from async_rollout.config.keys import known_keys, siblings

_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "above"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "below"),
}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite_number": "a finite number",
    "bool": "true or false",
    "string": "text (put it in quotes if it looks like a number)",
    "list": "a list, such as [a, b]",
    "tuple": "a list, such as [a, b]",
    "dict": "a mapping of keys to values",
    "model": "a mapping of keys to values",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: dotted key, value, what is wrong, and what to write instead."""

    key: str
    value: Any
    what: str
    fix: str

    def __str__(self) -> str:
        value = repr(self.value)
        shown = value if len(value) <= 120 else value[:117] + "..."
        return f"{self.key} = {shown}: {self.what}. Fix: {self.fix}"


class ConfigError(ValueError):
    """A configuration that cannot be run. `problems` holds every problem that was found."""

    def __init__(self, problems: Iterable[Problem], source: str = "") -> None:
        self.problems = tuple(problems)
        head = f"{source or 'config'}: {len(self.problems)} problem{'s' * (len(self.problems) > 1)}"
        super().__init__("\n  ".join([head, *map(str, self.problems)]))


def bad_value(what: str, fix: str) -> PydanticCustomError:
    """The error a field validator raises; the key and the value are added by `problems_in`."""
    return PydanticCustomError("bad_value", "{what}", {"what": what, "fix": fix})


def bad_combination(problems: list[Problem]) -> PydanticCustomError:
    """The error a model validator raises: problems that already name their keys."""
    return PydanticCustomError("bad_combination", "impossible combination", {"problems": problems})


def problems_in(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Every problem that pydantic found while it validated `model`."""
    found = []
    for detail in error.errors(include_url=False):
        if detail["type"] == "bad_combination":
            found.extend(detail["ctx"]["problems"])
        else:
            found.append(_translate(detail, model))
    return found


def closest(word: str, known: Iterable[str]) -> str:
    """'write X' for the known word nearest to `word`, else the list of what is known."""
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"write {near[0]}" if near else f"one of {', '.join(known)}"


def unknown_key(key: str, value: Any, model: type[BaseModel]) -> Problem:
    """The problem of a key that `model` does not have, with the nearest one that it has."""
    known, beside = list(known_keys(model)), siblings(model, key)
    names = {sibling.rpartition(".")[2]: sibling for sibling in beside}
    name = key.rpartition(".")[2]
    near = [names[n] for n in difflib.get_close_matches(name, names, n=1, cutoff=0.8)]
    near = near or [k for k in known if k.rpartition(".")[2] == name]
    near = near or [names[n] for n in difflib.get_close_matches(name, names, n=1)]
    near = near or difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    fix = f"write {' or '.join(near)}" if near else f"remove it; known here: {', '.join(beside or known)}"
    return Problem(key, value, "no such key", fix)


def _translate(detail: ErrorDetails, model: type[BaseModel]) -> Problem:
    key = ".".join(str(part) for part in detail["loc"] if part != "[key]") or "(top level)"
    kind, ctx, value = detail["type"], detail.get("ctx", {}), detail["input"]
    if kind == "extra_forbidden":
        return unknown_key(key, value, model)
    if kind == "missing":
        return Problem(key, None, "missing", f"give {key} a value")
    if kind == "bad_value":
        return Problem(key, value, ctx["what"], ctx["fix"])
    if kind == "literal_error":
        return Problem(key, value, "not a known value", f"one of {ctx['expected']}")
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return Problem(key, value, "out of range", f"a value {words} {ctx[name]}")
    if kind == "string_pattern_mismatch":
        return Problem(key, value, "not in the right form", f"text that matches {ctx['pattern']}")
    if kind == "too_short":
        return Problem(key, value, "too few entries", f"list at least {ctx['min_length']}")
    if kind == "too_long":
        return Problem(key, value, "too many entries", f"list at most {ctx['max_length']}")
    wanted = next((words for prefix, words in _KINDS.items() if kind.startswith(prefix)), None)
    if wanted:
        return Problem(key, value, "wrong type", f"write {wanted}")
    return Problem(key, value, "not valid", detail["msg"])
