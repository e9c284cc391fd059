"""What is wrong with a cell, or with the place its results go to."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from async_rollout.monitor.cell import WatchedCell
from async_rollout.monitor.schema import Finding, State
from async_rollout.monitor.state import patience, quiet_for
from async_rollout.monitor.text import duration
from async_rollout.records.states import StateRow

DROP_RATE_HIGH = 0.2  # share of tokens
_NO_BOUND_UPDATES = 20  # after which some token should have been stale where nothing bounds it
DISK_LOW_SHARE, DISK_LOW_BYTES = 0.05, 1 << 30

_WHY = {
    "out_of_memory": "out of memory",
    "killed": "a process was killed, perhaps for lack of memory",
    "hung": "a process did not answer in time",
    "non_finite": "a value was not finite",
    "reward": "answers could not be judged",
    "setup_timeout": "a worker was not ready in time",
    "disk_full": "the disk is full",
    "stopped": "it was stopped",
    "error": "it failed",
}


def findings_of(cell: WatchedCell, state: State, now: float) -> list[Finding]:
    """All findings about a cell, the gravest first."""
    found = [*_ends(cell, state), *_pace(cell, state, now), *_staleness(cell), *_losses(cell), *_files(cell)]
    return sorted(found, key=lambda f: ("error", "warning", "note").index(f.level))


def disk_findings(results: Path) -> list[Finding]:
    """A warning if the results' file system is nearly full."""
    try:
        usage = shutil.disk_usage(results)
    except OSError:
        return [Finding("error", "results_unreadable", "the results directory cannot be read")]
    if usage.free > min(DISK_LOW_SHARE * usage.total, DISK_LOW_BYTES):
        return []
    return [Finding("error", "disk_nearly_full", f"{usage.free / 2**20:,.0f} MiB free where the results go")]


def _ends(cell: WatchedCell, state: State) -> Iterator[Finding]:
    """How attempts ended."""
    failures = [row for row in cell.states if row.state == "failed"]
    if state == "failed" and cell.states[-1].state in ("done", "collapsed"):
        if not cell.summary_error:
            yield Finding("error", "summary_missing", "it says done, but there is no summary.json")
    elif state == "failed" and cell.states[-1].state != "failed":
        yield Finding("error", "died", "its process is gone and left no word")
    for row in failures:
        final = state == "failed" and row is cell.states[-1]
        yield Finding("error" if final else "note", row.reason or "error", _why(row))
    if cell.summary_error:
        yield Finding("error", "summary_unusable", f"summary.json: {cell.summary_error}")
    if state == "collapsed":
        yield Finding("warning", "collapsed", "the policy collapsed")


def _why(row: StateRow) -> str:
    return f"attempt {row.attempt}: {_WHY.get(row.reason, row.reason)} ({row.detail})"


def _pace(cell: WatchedCell, state: State, now: float) -> Iterator[Finding]:
    if state == "stalled":
        quiet, usual = quiet_for(cell, now), cell.recent.interval
        often = f"; usually one every {usual:.1f} s" if usual else ""
        # in steps, so that a watched page is not told every second
        quiet = patience(cell) * (quiet // patience(cell))
        yield Finding("error", "stalled", f"no commit for more than {duration(quiet)}{often}")


def _staleness(cell: WatchedCell) -> Iterator[Finding]:
    """A K that changes nothing, or is broken."""
    k, ending, last = cell.axes.k, cell.ending, cell.recent.last
    oldest = ending.staleness_max if ending else cell.oldest
    version = ending.policy_version if ending else last.version if last else 0
    if k != "inf" and oldest > k:
        yield Finding("error", "above_k", f"trained a token {oldest} versions old, above K = {k}")
    if k == 0 or version == 0:
        return
    needed = _NO_BOUND_UPDATES if k == "inf" else 4 * (k + 1)
    if version >= needed and oldest == 0:
        text = f"K = {k} is inert: no token was older than 0 versions in {version} updates"
        yield Finding("warning", "axis_inert", text)
    elif k != "inf" and 0 < cell.axes.updates < needed:
        text = f"K = {k} cannot bind within {cell.axes.updates} updates; it takes {needed}"
        yield Finding("note", "cannot_bind", text)


def _losses(cell: WatchedCell) -> Iterator[Finding]:
    rate = cell.ending.drop_rate if cell.ending else cell.recent.drop_rate
    if rate > DROP_RATE_HIGH:
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in sorted(cell.dropped.items()))
        text = f"{rate:.0%} of tokens are dropped" + (f" ({reasons})" if reasons else "")
        yield Finding("warning", "drop_rate_high", text)
    lost = cell.ending.infrastructure_failures if cell.ending else cell.dropped["infrastructure"]
    if lost:
        unit = "answers" if cell.ending else "tokens"
        yield Finding("warning", "reward_failing", f"{lost:,} {unit} could not be judged")


def _files(cell: WatchedCell) -> Iterator[Finding]:
    if cell.damaged:
        yield Finding("warning", "damaged_rows", f"{cell.damaged} damaged rows were left out")
