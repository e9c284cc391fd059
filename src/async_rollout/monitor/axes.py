"""A cell's place on the axes, as its configuration tells, or as far as its name does."""

import re
from typing import Any

from async_rollout.monitor.commits import is_number
from async_rollout.monitor.places import Place
from async_rollout.records.expected import ExpectedCell

_ID = re.compile(r"([a-z]+)-([a-z_0-9]+)(?:-(.+))?-k(\d+|inf)-dec([01])-s(\d+)")


def axes_of_name(place: Place) -> ExpectedCell:
    """As far as the directory's name tells."""
    found = _ID.fullmatch(place.cell)
    mode, algorithm, arm, k, decoupled, seed = found.groups() if found else ("", "", "", "0", "0", "0")
    bound = "inf" if k == "inf" else int(k)
    return ExpectedCell(
        place.dataset, place.cell, mode, algorithm, arm or "", bound, int(decoupled), int(seed), 0
    )


def axes_of_config(place: Place, config: dict[str, Any]) -> ExpectedCell | None:
    """From a resolved configuration; None if it does not hold them."""
    words = [config.get(name) for name in ("mode", "algorithm", "arm")]
    numbers = [config.get(name) for name in ("decoupled", "seed")]
    updates, k = number_of(config, "train", "updates"), config.get("k")
    if not all(isinstance(w, str) for w in words) or not all(isinstance(n, int) for n in numbers):
        return None
    if updates is None or not (k == "inf" or isinstance(k, int)):
        return None
    return ExpectedCell(place.dataset, place.cell, *words, k, *numbers, int(updates))


def number_of(config: dict[str, Any], block: str, name: str) -> float | None:
    """A number of a block; None if it is not there."""
    values = config.get(block)
    value = values.get(name) if isinstance(values, dict) else None
    return value if is_number(value) else None
