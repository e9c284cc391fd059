"""A reward worker: judges its shard's answers until it is told to stop or its run is silent. No torch.

    python -m async_rollout.rewards.shards.worker DIRECTORY SHARD INCARNATION [PARENT]

It takes tasks and configuration from the directory's setup and the judges from this package. With
PARENT, a process on the same host, it ends with that.
"""

import json
import sys
import time
from pathlib import Path

from async_rollout.lifeline import die_with
from async_rollout.rewards.judge import Judge, RewardError, build_judge
from async_rollout.rewards.shards import layout
from async_rollout.rewards.worker import load_tasks
from async_rollout.tasks.task import Task

_IDLE_SEC = 0.02  # between two looks
_BEAT_SEC = 0.5  # between two heartbeats while there is nothing to do


class _Run:
    """The run that a worker judges for, and whether it still wants that worker."""

    def __init__(self, root: Path, shard: layout.Shard, incarnation: int):
        self._root, self._shard, self._incarnation = root, shard, incarnation
        self._alive, self._changed = None, time.monotonic()

    def wants_us(self) -> bool:
        """False if the shard has another owner, `stop` is there, or the run's heartbeat stands still."""
        if self._shard.incarnation != self._incarnation or (self._root / "stop").exists():
            return False
        if (alive := layout.read_or_none(self._root / "alive")) != self._alive:
            self._alive, self._changed = alive, time.monotonic()
        return time.monotonic() - self._changed <= layout.RUN_SILENT_SEC


def work(root: Path, number: int, incarnation: int) -> None:
    """Judge for as long as the run wants this worker, which is asked before every answer."""
    config, paths = layout.read_setup(root)
    shard = layout.Shard(root, number)
    tasks = load_tasks(paths)
    judge = build_judge(config, {task.task_type for task in tasks.values()})
    run = _Run(root, shard, incarnation)
    beaten = 0.0
    while run.wants_us():
        answered = False
        for ticket, path in layout.waiting(shard.requests):
            shard.beat(incarnation, ticket)
            beaten = time.monotonic()
            if not run.wants_us():
                return
            if (request := layout.read_or_none(path)) is not None:
                layout.put(shard.verdicts, ticket, _judged(tasks, judge, json.loads(request)))
                path.unlink(missing_ok=True)
                answered = True
        if not answered:
            if time.monotonic() - beaten > _BEAT_SEC:
                shard.beat(incarnation, "")
                beaten = time.monotonic()
            time.sleep(_IDLE_SEC)


def _judged(tasks: dict[str, Task], judge: Judge, request: dict[str, str]) -> dict[str, object]:
    """The verdict as plain data, or {"failed": why}."""
    if request["task_id"] not in tasks:
        return {"failed": f"task {request['task_id']} is in none of the judge's files"}
    try:
        verdict = judge(tasks[request["task_id"]], request["text"])
    except RewardError as error:
        return {"failed": str(error)}
    return {
        "reward": verdict.reward,
        "verdict": verdict.verdict,
        "extracted": verdict.extracted,
        "compared": verdict.compared,
    }


if __name__ == "__main__":
    if len(sys.argv) > 4:
        die_with(int(sys.argv[4]))
    work(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
