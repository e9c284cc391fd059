"""`states.jsonl`: what a cell is doing, one row whenever that changes, over all its attempts.

Whoever watches a cell learns from here, and not from the words of its logs, that it works,
that it failed, and why.
"""

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from async_rollout.records.files import JsonlWriter, read_jsonl

STATES_FILE = "states.jsonl"
State = Literal["setting up", "running", "evaluating", "done", "collapsed", "failed"]
STATES: tuple[str, ...] = get_args(State)
# Why a run failed. `killed`: a process ended by SIGKILL, often the kernel's answer to lack of memory;
# `hung`: one did not answer in time; `stopped`: by Ctrl-C, SIGTERM or a time limit.
Reason = Literal[
    "",
    "out_of_memory",
    "killed",
    "hung",
    "non_finite",
    "reward",
    "setup_timeout",
    "disk_full",
    "stopped",
    "error",
]


@dataclass(frozen=True, slots=True)
class StateRow:
    """The cell entered a state."""

    time: float  # seconds since 1970
    state: State
    attempt: int
    host: str
    pid: int  # of the controller
    reason: Reason  # "" unless it failed
    detail: str  # for a reader: the error's last line


class StateLog:
    """One attempt's entries in the cell's `states.jsonl`."""

    def __init__(self, out: Path, attempt: int):
        self._path = out / STATES_FILE
        self._attempt = attempt

    def enter(self, state: State, reason: Reason = "", detail: str = "") -> None:
        """Append a row; it is on disk when this returns."""
        writer = JsonlWriter(self._path)
        writer.write(
            StateRow(time.time(), state, self._attempt, platform.node(), os.getpid(), reason, detail)
        )
        writer.close()


def last_state(cell: Path) -> StateRow | None:
    """What the cell in this directory did last; None if it never began, or if its rows are damaged."""
    try:
        rows = list(read_jsonl(cell / STATES_FILE))
        return StateRow(**rows[-1]) if rows else None
    except (FileNotFoundError, ValueError, TypeError):
        return None
