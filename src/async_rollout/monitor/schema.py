"""What the monitor tells other programs: the shapes of its JSON answers."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

State = Literal["queued", "setting up", "running", "stalled", "retrying", "collapsed", "failed", "done"]
Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a reader should know. `kind` is for programs, `text` for people."""

    level: Level
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Card:
    """One cell now. What is not known yet is null; rates lie in [0, 1]."""

    id: str  # <experiment>/<dataset>/<cell>
    experiment: str
    dataset: str
    cell: str
    mode: str
    algorithm: str
    arm: str
    k: int | Literal["inf"]
    decoupled: int
    seed: int
    state: State
    activity: str  # the cell's own word for what it does
    version: int  # commits so far
    updates: int  # commits at the end; 0 if not known
    progress: float
    pass_rate: float | None  # training samples of the last ten commits; of the last 10 % when done
    eval_pass_rate: float | None  # the newest, sampled
    staleness: float | None  # mean at the last commit; over the run when done
    staleness_max: int | None  # so far
    tokens_per_sec: float | None  # trained, last ten commits; over the run when done
    attempts: int
    last_sign: int  # seconds since 1970 when a file of the cell last changed; 0: never
    findings: list[Finding]


@dataclass(frozen=True, slots=True)
class Sweep:
    """The results directory as a whole."""

    name: str
    states: dict[str, int]  # number of cells
    findings: list[Finding]
    unread: int  # cells found that were not looked at yet


@dataclass(frozen=True, slots=True)
class Listing:
    """Answer of /api/cells."""

    sweep: Sweep
    cells: list[Card]


@dataclass(frozen=True, slots=True)
class Metrics:
    """Answer of /api/metrics/<id>: columns of equal length, one point for `stride` commits.

    `epoch` changes when points that were given out no longer hold, so that all must be asked for again.
    """

    id: str
    epoch: int
    stride: int
    columns: dict[str, list[float]]
    evals: list[dict[str, float]]


@dataclass(frozen=True, slots=True)
class Span:
    """What a process did from `start` to `end`, in seconds of the run."""

    role: str
    name: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Detail:
    """Answer of /api/cells/<id>."""

    card: Card
    staleness: dict[str, dict[str, int]]  # trained (generated, dropped when done): {age: tokens}
    dropped: dict[str, int]  # tokens by reason
    busy: dict[str, float]  # share of time by role
    busy_source: str
    timeline: list[Span]
    samples: list[dict[str, Any]]  # newest first, rows of results.jsonl
    states: list[dict[str, Any]]  # rows of states.jsonl
    logs: dict[str, str]  # the ends of stdout.log and stderr.log
    config: dict[str, Any] | None


ANSWERS = {"/api/cells": Listing, "/api/cells/<id>": Detail, "/api/metrics/<id>": Metrics}


def json_schemas() -> dict[str, Any]:
    """JSON schema of each answer, by path."""
    return {path: TypeAdapter(shape).json_schema() for path, shape in ANSWERS.items()}
