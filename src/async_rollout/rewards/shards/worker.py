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


def work(root: Path, number: int, incarnation: int) -> None:
    """Judge until the shard has another owner, `stop` is there, or the run's heartbeat stands still."""
    config, paths = layout.read_setup(root)
    shard = layout.Shard(root, number)
    tasks = load_tasks(paths)
    judge = build_judge(config, {task.task_type for task in tasks.values()})
    beaten = 0.0
    alive, changed = None, time.monotonic()
    while shard.incarnation == incarnation and not (root / "stop").exists():
        now = time.monotonic()
        if (text := layout.read_or_none(root / "alive")) != alive:
            alive, changed = text, now
        if now - changed > layout.RUN_SILENT_SEC:
            return
        answered = False
        for ticket, path in layout.waiting(shard.requests):
            shard.beat(incarnation, ticket)
            beaten = time.monotonic()
            if shard.incarnation != incarnation:
                return
            if (request := layout.read_or_none(path)) is not None:
                layout.put(shard.verdicts, ticket, _judged(tasks, judge, json.loads(request)))
                path.unlink(missing_ok=True)
                answered = True
        if not answered:
            if now - beaten > _BEAT_SEC:
                shard.beat(incarnation, "")
                beaten = now
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
