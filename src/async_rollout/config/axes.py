"""What a sweep varies: the values that each axis may take."""

import re
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from async_rollout.config.errors import bad_value, closest
from async_rollout.config.recipes import RECIPES

SLUG = r"^[a-z0-9][a-z0-9_-]*$"
MODES = ("sync", "async", "areal", "lagged")
OVERLAPPING = ("async", "areal")  # generation and training at the same time
ALGORITHMS = tuple(RECIPES)
DATASETS = {  # whether a name follows, as in jsonl:PATH
    "sort": False,
    "gsm8k": False,
    "math": False,
    "coding": False,
    "calculator": False,
    "reasoning_gym": True,
    "jsonl": True,
}
_JSONL = "jsonl:PATH, one JSON object a line"


def _known(value: Any, known: tuple[str, ...]) -> Any:
    if value in known:
        return value
    raise bad_value("unknown", closest(str(value), known))


def _mode(value: Any) -> Any:
    return _known(value, MODES)


def _algorithm(value: Any) -> Any:
    return _known(value, ALGORITHMS)


def _dataset(value: Any) -> Any:
    name, _, rest = str(value).partition(":")
    if isinstance(value, str) and name in DATASETS and bool(rest) == DATASETS[name]:
        return value
    plain = ", ".join(name for name, named in DATASETS.items() if not named)
    raise bad_value("no such dataset", f"one of {plain}, reasoning_gym:NAME, {_JSONL}")


def dataset_slug(dataset: str) -> str:
    """The dataset's name in directories: its own, or a file's without its ending."""
    kind, _, rest = dataset.partition(":")
    name = PurePath(rest).stem if kind == "jsonl" else dataset
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "data"


def _whole(value: Any, what: str) -> int:
    """A whole number >= 0 from an int or its decimal digits: `01` and 1 are the same."""
    digits = str(value)
    if not re.fullmatch(r"[0-9]+", digits):
        raise bad_value("out of range" if re.fullmatch(r"-[0-9]+", digits) else "wrong type", what)
    return int(digits)


def _seed(value: Any) -> int:
    return _whole(value, "a whole number >= 0")


def _staleness(value: Any) -> int | str:
    if value in ("inf", ".inf") or (isinstance(value, float) and value == float("inf")):
        return "inf"
    return _whole(value, 'a whole number >= 0, or "inf" for no bound')


def _decoupled(value: Any) -> int:
    if str(value) not in ("0", "1"):
        raise bad_value("not a known value", "1 (decoupled objective) or 0 (live)")
    return int(value)


Dataset = Annotated[
    str,
    BeforeValidator(_dataset),
    Field(pattern=r"^(sort|gsm8k|math|coding|calculator|reasoning_gym:\w+|jsonl:.+)$"),
]
Mode = Annotated[Literal[MODES], BeforeValidator(_mode)]
Algorithm = Annotated[Literal[ALGORITHMS], BeforeValidator(_algorithm)]
Seed = Annotated[int, BeforeValidator(_seed), Field(ge=0)]
StalenessBound = Annotated[Annotated[int, Field(ge=0)] | Literal["inf"], BeforeValidator(_staleness)]
Decoupled = Annotated[Literal[0, 1], BeforeValidator(_decoupled)]
