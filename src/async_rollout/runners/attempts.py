"""A cell's directory over several attempts at the same run.

What an attempt wrote is never written over. An attempt that follows one that was cut off
counts on, and finds its rows as `*.attempt<n>`; after a finished run, or under another
configuration, counting starts anew and all of the earlier files lie in `earlier<n>/`.
"""

import json
import shutil
from pathlib import Path

from async_rollout.config.run import RunConfig
from async_rollout.records.files import read_jsonl, write_json
from async_rollout.records.states import STATES_FILE

# The rows of an attempt; metrics.jsonl is moved last: while it is there, so is the attempt.
_ROWS = ("results.jsonl", "evals.jsonl", "stdout.log", "stderr.log", "metrics.jsonl")
_OVER = ("done", "collapsed")
_TRANSIENT = ("trace", "snapshots")


def begin_attempt(out: Path, config: RunConfig) -> int:
    """Make the directory ready for an attempt, with its config.json; returns its number, from 1."""
    out.mkdir(parents=True, exist_ok=True)
    resolved = config.model_dump(mode="json")
    if (out / "config.json").exists() and not _goes_on(out, resolved):
        _set_aside(out)
    (out / "summary.json").unlink(missing_ok=True)
    for name in _TRANSIENT:
        shutil.rmtree(out / name, ignore_errors=True)
    attempt = 1 + len(list(out.glob("metrics.jsonl.attempt*")))
    if (out / "metrics.jsonl").exists():
        for path in (out / name for name in _ROWS):
            if path.exists():
                path.rename(path.with_name(f"{path.name}.attempt{attempt}"))
        attempt += 1
    write_json(out / "config.json", resolved)
    return attempt


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
