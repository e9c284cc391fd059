"""`results/<experiment>/cells.json`: the cells that a sweep will have, also those not started.

The workflow writes it when it starts; it decides nothing, it lets a watcher show what is queued.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from async_rollout.records.files import write_json

EXPECTED_FILE = "cells.json"


@dataclass(frozen=True, slots=True)
class ExpectedCell:
    """A cell's place on the axes, and how long it will be."""

    dataset: str  # as in paths
    cell: str  # the name of its directory
    mode: str
    algorithm: str
    arm: str
    k: int | Literal["inf"]
    decoupled: int
    seed: int
    updates: int


def write_expected(experiment: Path, cells: Iterable[ExpectedCell]) -> None:
    """Replace the list in an experiment's directory."""
    write_json(experiment / EXPECTED_FILE, [asdict(cell) for cell in cells], indent=None)
