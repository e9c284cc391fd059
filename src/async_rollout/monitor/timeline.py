"""Who does what: spans from a run's traces, and processor time from its resources."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from async_rollout.monitor.commits import Commit
from async_rollout.monitor.files import json_rows, read_json, read_tail, subdirectories
from async_rollout.monitor.schema import Span

_SPANS = 600
_TRACE_BYTES = 16 << 20
_TAIL_BYTES = 64 << 10
_SHARE_SEC = 60.0


def timeline(directory: Path, commits: list[Commit]) -> list[Span]:
    """The newest spans: of the finished trace, else of the processes' own, else the trainer's commits."""
    spans = list(_finished(directory)) or list(_running(directory)) or list(_of_commits(commits))
    return sorted(spans, key=lambda span: span.end)[-_SPANS:]


def _finished(directory: Path) -> Iterator[Span]:
    """Of trace.json, in Chrome's format: microseconds."""
    trace = read_json(directory / "trace.json", _TRACE_BYTES)
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    roles: dict[Any, str] = {}
    for event in events if isinstance(events, list) else []:
        if not isinstance(event, dict):
            continue
        if event.get("ph") == "M" and isinstance(event.get("args"), dict):
            roles[str(event.get("pid"))] = str(event["args"].get("name"))
        elif event.get("ph") == "X" and _are_numbers(event.get("ts"), event.get("dur")):
            start, length = event["ts"] / 1e6, event["dur"] / 1e6
            role = roles.get(str(event.get("pid")), "?")
            yield Span(role, str(event.get("name")), round(start, 4), round(start + length, 4))


def _running(directory: Path) -> Iterator[Span]:
    """Of trace/*.jsonl, what its buffers let through; seconds since the first of them."""
    if "trace" not in subdirectories(directory):
        return
    files = sorted((directory / "trace").glob("*.jsonl"))
    rows = [row for path in files for row in json_rows(read_tail(path, _TAIL_BYTES))]
    rows = [row for row in rows if _are_numbers(row.get("start"), row.get("end"))]
    origin = min((row["start"] for row in rows), default=0.0)
    for row in rows:
        start, end = round(row["start"] - origin, 4), round(row["end"] - origin, 4)
        yield Span(str(row.get("role")), str(row.get("name")), start, end)


def _of_commits(commits: list[Commit]) -> Iterator[Span]:
    for commit in commits:
        began = commit.seconds - commit.step_sec
        yield Span("trainer", "wait for batch", round(began - commit.wait_sec, 4), round(began, 4))
        yield Span("trainer", "train", round(began, 4), round(commit.seconds, 4))


def cpu_shares(directory: Path) -> dict[str, float]:
    """Processor seconds a second of each role, from the end of resources.csv."""
    samples: dict[str, list[tuple[float, float]]] = {}
    for line in read_tail(directory / "resources.csv", _TAIL_BYTES).decode("utf-8", "replace").splitlines():
        try:
            seconds, role, _pid, _rss, cpu, *_ = line.split(",")
            point = float(seconds), float(cpu)
        except ValueError:  # the header, or a torn line
            continue
        if _are_numbers(*point):
            samples.setdefault(role, []).append(point)
    shares = {}
    for role, points in samples.items():
        end, cpu = points[-1]
        start, before = next((p for p in points if p[0] >= end - _SHARE_SEC), points[-1])
        if end > start:
            shares[role] = round(min(1.0, max(0.0, (cpu - before) / (end - start))), 4)
    return shares


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and math.isfinite(value) for value in values)
