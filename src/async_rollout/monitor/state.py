"""Which of eight states a cell is in, and why: from its rows and files, never from words in a log."""

import os
import platform

from async_rollout.monitor.cell import WatchedCell
from async_rollout.monitor.schema import State

STATES: tuple[State, ...] = State.__args__
STALL_FACTOR = 10  # times the usual interval between two commits
STALL_MIN_SEC = 30.0
EVALUATION_PATIENCE_SEC = 3600.0


def state_of(cell: WatchedCell, now: float) -> State:
    """The state at `now` (seconds since 1970)."""
    if cell.ending:
        return "collapsed" if cell.ending.status == "collapsed" else "done"
    if not cell.states:
        return "running" if cell.recent.last else "queued"
    last = cell.states[-1]
    if last.state in ("failed", "done", "collapsed") or is_gone(cell):
        return "failed"  # `done` without a sound summary is no result
    if quiet_for(cell, now) > patience(cell):
        return "stalled"
    if last.state == "evaluating" or (cell.recent.last and last.state == "running"):
        return "running"
    if last.attempt > 1:
        return "retrying"
    return "running" if last.state == "running" else "setting up"


def is_gone(cell: WatchedCell) -> bool:
    """True if the cell's process should be alive on this machine and is not."""
    last = cell.states[-1]
    return last.host == platform.node() and last.pid > 0 and not _is_alive(last.pid)


def quiet_for(cell: WatchedCell, now: float) -> float:
    """Seconds since the cell last entered a state or committed."""
    return max(0.0, now - max(cell.states[-1].time, cell.last_commit_time, cell.last_eval_time))


def patience(cell: WatchedCell) -> float:
    """Seconds without such an event after which a cell counts as stalled."""
    doing = cell.states[-1].state
    if doing == "evaluating":
        return EVALUATION_PATIENCE_SEC
    if doing == "setting up" or cell.recent.interval is None:
        return cell.setup_patience
    return max(STALL_MIN_SEC, STALL_FACTOR * cell.recent.interval)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # someone else's
    return True
