"""What a finding is."""

from dataclasses import dataclass
from typing import Literal

from async_rollout.config.cells import Cell

Level = Literal["error", "warning", "note"]
LEVELS = ("error", "warning", "note")


@dataclass(frozen=True)
class Check:
    """One finding. `cell` is set where it concerns a single cell."""

    level: Level
    text: str
    cell: Cell | None = None
