"""Who was busy when: spans that each process appends to a file of its own.

Times are of the machine's monotonic clock, which all processes share. At the end the files
are merged into one Chrome trace (trace.json, opens in Perfetto). Imports no torch.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from async_rollout.records.files import read_jsonl

_SHORT_SEC = 0.002  # a wait that is no break


class Events:
    """Writer of one process's spans."""

    def __init__(self, path: Path, role: str):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8", buffering=1 << 16)
        self._role = role

    def add(self, name: str, start: float, end: float, **arguments: int | float | str) -> None:
        """A span from `start` to `end`, both time.monotonic()."""
        row = {"name": name, "role": self._role, "start": start, "end": end, "args": arguments}
        self._file.write(json.dumps(row, allow_nan=False) + "\n")

    @contextmanager
    def span(self, name: str, **arguments: int | float | str) -> Iterator[None]:
        """The block as a span; one that raises is not recorded."""
        start = time.monotonic()
        yield
        self.add(name, start, time.monotonic(), **arguments)

    def close(self) -> None:
        """Write out what is buffered."""
        self._file.close()


class Stretches:
    """What a process does between its waits, as spans of one name; a very short wait is part of one."""

    def __init__(self, events: Events, name: str):
        self._events = events
        self._name = name
        self._begun = self._ended = time.monotonic()

    @contextmanager
    def wait(self) -> Iterator[None]:
        """The block waits."""
        self._ended = time.monotonic()
        yield
        now = time.monotonic()
        if now - self._ended > _SHORT_SEC:
            self._events.add(self._name, self._begun, self._ended)
            self._begun = now

    def close(self) -> None:
        """The last one ends, and with it what is written down."""
        self._events.add(self._name, self._begun, time.monotonic())
        self._events.close()


def read_events(directory: Path) -> list[dict]:
    """Spans of all processes of a run, by start."""
    rows = [row for path in sorted(directory.glob("*.jsonl")) for row in read_jsonl(path)]
    return sorted(rows, key=lambda row: row["start"])


def chrome_trace(events: list[dict], origin: float) -> dict:
    """Trace-event JSON object; microseconds since `origin`."""
    roles = {role: number for number, role in enumerate(sorted({e["role"] for e in events}))}
    names = [
        {"ph": "M", "name": "process_name", "pid": number, "tid": 0, "args": {"name": role}}
        for role, number in roles.items()
    ]
    spans = [
        {
            "ph": "X",
            "name": e["name"],
            "pid": roles[e["role"]],
            "tid": 0,
            "ts": round((e["start"] - origin) * 1e6, 1),
            "dur": round((e["end"] - e["start"]) * 1e6, 1),
            "args": e["args"],
        }
        for e in events
    ]
    return {"traceEvents": names + spans, "displayTimeUnit": "ms"}


Interval = tuple[float, float]


def busy_fractions(
    events: list[dict], start: float, end: float, idle: frozenset[str], pauses: Sequence[Interval] = ()
) -> dict[str, float]:
    """Share of [start, end], but for the `pauses` in it, that each role spent in spans that are not `idle`.

    Role names are `kind-index`; processes of one kind are averaged.
    """
    busy: dict[str, float] = {}
    processes: dict[str, set[str]] = {}
    for event in events:
        kind = event["role"].rsplit("-", 1)[0]
        processes.setdefault(kind, set()).add(event["role"])
        if event["name"] not in idle:
            span = max(event["start"], start), min(event["end"], end)
            busy[kind] = busy.get(kind, 0.0) + _outside(span, pauses)
    wall = max(_outside((start, end), pauses), 1e-9)
    return {kind: min(1.0, busy.get(kind, 0.0) / wall / len(names)) for kind, names in processes.items()}


def _outside(span: Interval, pauses: Sequence[Interval]) -> float:
    """Seconds of the span that lie in none of the pauses, which do not overlap."""
    return _length(*span) - sum(_length(max(span[0], begun), min(span[1], ended)) for begun, ended in pauses)


def _length(begun: float, ended: float) -> float:
    return max(0.0, ended - begun)
