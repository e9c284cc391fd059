"""Cells in any state of their life, written as runs and workflows write them."""

import json
import math
import os
import platform
import random
from dataclasses import fields
from pathlib import Path

from async_rollout.config.cells import Cell
from async_rollout.records.expected import ExpectedCell, write_expected
from async_rollout.records.files import JsonlWriter, write_json
from async_rollout.records.rows import EvalRow, MetricsRow, ResultRow
from async_rollout.records.states import StateRow
from summaries import summary_record

BEGUN = 1_000_000.0  # seconds since 1970, where a test brings its own time


def expect(results: Path, *cells: Cell, experiment: str = "demo", updates: int = 60) -> None:
    """What the workflow announces."""
    axes = ("mode", "algorithm", "arm", "k", "decoupled", "seed")
    write_expected(
        results / experiment,
        [
            ExpectedCell(c.dataset_slug, c.id, **{axis: getattr(c, axis) for axis in axes}, updates=updates)
            for c in cells
        ],
    )


def start(results: Path, cell: Cell, *, experiment: str = "demo", updates: int = 60) -> Path:
    """The directory of a cell, with its configuration."""
    directory = results / experiment / cell.dataset_slug / "runs" / cell.id
    config = {f.name: getattr(cell, f.name) for f in fields(Cell)}
    config |= {"experiment": experiment, "train": {"updates": updates}}
    write_json(directory / "config.json", config | {"supervision": {"setup_timeout_sec": 900}})
    return directory


def enter(directory: Path, state: str, *, time: float = BEGUN, attempt: int = 1, **changes) -> None:
    """A row of states.jsonl, of this very process unless told otherwise."""
    base = {"host": platform.node(), "pid": os.getpid(), "reason": "", "detail": ""}
    _append(directory / "states.jsonl", StateRow(time=time, state=state, attempt=attempt, **base | changes))


def commit(
    directory: Path, *versions: int, every_sec: float = 1.0, rate: float | None = None, **changes
) -> None:
    """Rows of metrics.jsonl: a policy that learns."""
    rows = []
    for version in versions:
        noise = random.Random(f"{directory}{version}")
        goal = (0.15 + 0.75 * (1 - math.exp(-version / 25))) if rate is None else rate
        correct = sum(noise.random() < goal for _ in range(128))
        values = dict.fromkeys((f.name for f in fields(MetricsRow)), 0.01) | {
            "version": version,
            "seconds": version * every_sec,
            "groups": [version],
            "reward_mean": correct / 128,
            "correct": correct,
            "incorrect": 128 - correct,
            "trained_tokens": 1200 + noise.randrange(200),
            "trained_samples": 128,
            "staleness": {"0": 400, "1": 600, "2": 300},
            "staleness_mean": 0.8 + 0.3 * noise.random(),
            "staleness_max": 2,
            "kl": 0.002 * noise.random(),
            "ess_ratio": 1 - 0.1 * noise.random(),
            "entropy": 1.2 * math.exp(-version / 40),
            "length_mean": 10.0,
            "step_sec": 0.6 * every_sec,
            "wait_sec": 0.3 * every_sec,
            "waiting_groups": noise.randrange(6),
            "running_groups": 4 + noise.randrange(4),
            "empty": False,
            "dropped": {},
        }
        rows.append(MetricsRow(**values | changes))
    _append(directory / "metrics.jsonl", *rows)


def evaluate(directory: Path, *versions: int, every_sec: float = 1.0) -> None:
    """Rows of evals.jsonl."""
    rates = [0.12 + 0.7 * (1 - math.exp(-v / 25)) for v in versions]
    _append(
        directory / "evals.jsonl",
        *(EvalRow(v, v, v * every_sec, r, r, 64) for v, r in zip(versions, rates, strict=True)),
    )


def answer(directory: Path, response: str, **changes) -> None:
    """A row of results.jsonl."""
    base = dict.fromkeys((f.name for f in fields(ResultRow)), 0)
    base |= {"task_id": "sort-31", "prompt": "31>", "response": response, "finish_reason": "stop"}
    base |= {"verdict": "fail", "extracted": None, "versions": [[3, 4], [4, 2]], "dropped": None}
    _append(directory / "results.jsonl", ResultRow(**base | changes))


def finish(directory: Path, cell: Cell, *, experiment: str = "demo", **changes) -> None:
    """The summary, and the row that says so."""
    record = summary_record(cell, experiment=experiment, **changes)
    write_json(directory / "summary.json", record)
    enter(directory, record["status"], attempt=record["attempts"])


def touch(directory: Path, time: float) -> None:
    """Every file of a cell was last changed at `time`."""
    for path in directory.iterdir():
        os.utime(path, (time, time))


def tear(path: Path) -> None:
    """A writer was cut off in the middle of its last line."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"version": 99})[:-4])


def _append(path: Path, *rows: object) -> None:
    writer = JsonlWriter(path)
    writer.write(*rows)
    writer.close()
