"""The directory that a run and its reward workers share, and the files in it.

    setup.json             the `reward` block and the task files; written once, before any worker starts
    alive                  the run's heartbeat
    stop                   once it is there, workers end
    shard-000/incarnation  which worker the shard belongs to; an older one ends when it sees another number
    shard-000/heartbeat    the worker's
    shard-000/requests/    one file an answer
    shard-000/verdicts/    one file an answer

A heartbeat is a text that changes. Whoever reads it measures with its own clock how long it has not.
Nothing in a request names code: a request is a ticket, a task's id and a text.
"""

import json
import os
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from async_rollout.config.reward import RewardConfig
from async_rollout.records.files import write_text

RUN_SILENT_SEC = 60.0  # workers end when the run's heartbeat has not changed for so long


class Shard:
    """One worker's part of the directory."""

    def __init__(self, root: Path, number: int):
        self.number = number
        self.home = root / f"shard-{number:03d}"
        self.requests = self.home / "requests"
        self.verdicts = self.home / "verdicts"

    def make(self) -> None:
        """Create its directories."""
        for directory in (self.requests, self.verdicts):
            directory.mkdir(parents=True, exist_ok=True)

    @property
    def incarnation(self) -> int:
        """Which worker it belongs to; 0 before the first."""
        text = read_or_none(self.home / "incarnation")
        return int(text) if text else 0

    def next_incarnation(self) -> int:
        """Take it from whoever has it; returns the new worker's number."""
        number = self.incarnation + 1
        write_text(self.home / "incarnation", str(number))
        return number

    def beat(self, incarnation: int, ticket: str) -> None:
        """Say that the worker lives and which answer it begins; "" if none."""
        _replace(self.home / "heartbeat", f"{incarnation} {time.time_ns()} {ticket}")

    def heartbeat(self) -> tuple[str, int, str]:
        """(the whole text, the worker's incarnation, the answer in its hand); 0 where there is none."""
        text = read_or_none(self.home / "heartbeat") or ""
        number, _, rest = text.partition(" ")
        return text, int(number or 0), rest.partition(" ")[2]


def shard_of(ticket: str, shards: int) -> int:
    """Which shard an answer belongs to."""
    return int.from_bytes(blake2b(ticket.encode(), digest_size=8).digest()) % shards


def write_setup(root: Path, config: RewardConfig, tasks: list[Path]) -> None:
    """What every worker reads first."""
    content = {"reward": config.model_dump(mode="json"), "tasks": [str(path.resolve()) for path in tasks]}
    write_text(root / "setup.json", json.dumps(content, allow_nan=False) + "\n")


def read_setup(root: Path) -> tuple[RewardConfig, list[Path]]:
    """(the `reward` block, task files). Raises FileNotFoundError if no run has set the directory up."""
    content = json.loads((root / "setup.json").read_text(encoding="utf-8"))
    return RewardConfig.model_validate(content["reward"]), [Path(path) for path in content["tasks"]]


def beat_of_run(root: Path) -> None:
    """Say that the run lives."""
    _replace(root / "alive", str(time.time_ns()))


def put(directory: Path, ticket: str, content: dict[str, Any]) -> None:
    """Write an answer's file, whole and on disk when it appears."""
    write_text(directory / f"{ticket}.json", json.dumps(content, allow_nan=False) + "\n")


def waiting(directory: Path) -> Iterator[tuple[str, Path]]:
    """(ticket, file) of every file that is whole, in the order of tickets."""
    for name in sorted(os.listdir(directory)):
        if name.endswith(".json") and not name.startswith("."):
            yield name.removesuffix(".json"), directory / name


def read_or_none(path: Path) -> str | None:
    """The file's text; None if it is not there (any more)."""
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _replace(path: Path, text: str) -> None:
    """A new content that nobody sees half of; it need not survive a crash."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
