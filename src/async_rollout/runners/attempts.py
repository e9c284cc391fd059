"""A cell's directory over several attempts at the same run.

What an attempt wrote is never written over. An attempt that follows one that was cut off goes
on from its newest sound checkpoint: the files of rows are cut back to it, and what is cut lies
in `*.attempt<n>`. Without a checkpoint it begins anew. After a finished run, or under another
configuration, counting starts anew and all of the earlier files lie in `earlier<n>/`.
"""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from async_rollout.config.run import RunConfig
from async_rollout.records.files import read_jsonl, write_json
from async_rollout.records.states import STATES_FILE
from async_rollout.runtime import checkpoint
from async_rollout.runtime.checkpoint import CheckpointError, RunState

ROWS = ("results.jsonl", "evals.jsonl", "metrics.jsonl")  # the last one last: it counts the attempts
_LOGS = ("stdout.log", "stderr.log", "resources.csv")
_OVER = ("done", "collapsed")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a run: what it starts from and what went before."""

    number: int  # from 1
    lost_sec: float = 0.0  # work of earlier attempts that is done again
    place: Path | None = None  # the checkpoint that it goes on from
    state: RunState | None = None


def begin_attempt(out: Path, config: RunConfig) -> Attempt:
    """Make the directory ready for an attempt, with its config.json.

    Raises CheckpointError if there are checkpoints and none is sound.
    """
    out.mkdir(parents=True, exist_ok=True)
    resolved = config.model_dump(mode="json")
    if (out / "config.json").exists() and not _goes_on(out, resolved):
        _set_aside(out)
    (out / "summary.json").unlink(missing_ok=True)
    shutil.rmtree(out / "trace", ignore_errors=True)
    checkpoint.discard(out)
    place = _newest(out)
    state = checkpoint.read_state(place) if place else None
    if state is None:
        shutil.rmtree(out / "snapshots", ignore_errors=True)
    number = 1 + len(list(out.glob("metrics.jsonl.attempt*")))
    if (out / "metrics.jsonl").exists():
        _keep_apart(out, number, state.offsets if state else {})
        number += 1
    write_json(out / "config.json", resolved)
    return Attempt(number, _lost_seconds(out), place, state)


def _goes_on(out: Path, resolved: dict) -> bool:
    """True if what lies here is a run of this configuration that did not reach its end."""
    try:
        same = json.loads((out / "config.json").read_text(encoding="utf-8")) == resolved
        states = list(read_jsonl(out / STATES_FILE)) if (out / STATES_FILE).exists() else []
    except ValueError:  # damaged: not a run to go on with
        return False
    return same and (not states or states[-1].get("state") not in _OVER)


def _set_aside(out: Path) -> None:
    """Move all that lies here, but the prepared tasks, into a directory of its own."""
    place = out / f"earlier{1 + len(list(out.glob('earlier*')))}"
    place.mkdir()
    for path in sorted(out.iterdir()):
        if path.name != "data" and not path.name.startswith("earlier"):
            path.rename(place / path.name)


def _newest(out: Path) -> Path | None:
    """The newest sound checkpoint, None if there are none at all; damaged ones are named and removed."""
    found = checkpoint.checkpoints(out)
    faults = []
    for place in found:
        fault = checkpoint.damage(place) or _missing_rows(out, place)
        if fault is None:
            for damaged in found[: len(faults)]:
                shutil.rmtree(damaged)
            return place
        faults.append(f"{place}: {fault}")
        print(f"damaged checkpoint {faults[-1]}", file=sys.stderr)
    if faults:
        raise CheckpointError(
            "no checkpoint is sound, and going on without one would hide that:\n  "
            + "\n  ".join(faults)
            + f"\nremove {out / checkpoint.DIRECTORY} to begin the run anew"
        )
    return None


def _missing_rows(out: Path, place: Path) -> str | None:
    for name, offset in checkpoint.read_state(place).offsets.items():
        path = out / name
        if (path.stat().st_size if path.exists() else 0) < offset:
            return f"{name} is shorter than when it was taken ({offset} bytes)"
    return None


def _keep_apart(out: Path, number: int, offsets: dict[str, int]) -> None:
    """Rows beyond the offsets, and the logs, into `*.attempt<number>`. Can be cut off and done again."""
    for name in _LOGS:
        if (out / name).exists():
            (out / name).rename(out / f"{name}.attempt{number}")
    for name in ROWS:
        path, kept = out / name, out / f"{name}.attempt{number}"
        offset = offsets.get(name, 0)
        if path.exists() and not kept.exists():
            _cut(path, offset, kept)


def _cut(path: Path, offset: int, kept: Path) -> None:
    """Move what lies beyond `offset` to `kept`, which appears when the file has been cut."""
    if not offset:
        path.rename(kept)
        return
    tail = path.with_name(f".{path.name}.tail")
    if not tail.exists():
        partial = path.with_name(f".{path.name}.partial")
        with path.open("rb") as source, partial.open("wb") as target:
            source.seek(offset)
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        partial.rename(tail)
    os.truncate(path, offset)
    tail.rename(kept)


def _lost_seconds(out: Path) -> float:
    """Time of the commits that were cut, from one to the next."""
    cut = [row for path in sorted(out.glob("metrics.jsonl.attempt*")) for row in read_jsonl(path)]
    return sum(row["step_sec"] + row["wait_sec"] for row in cut)
