"""A judging process: takes batches of answers, sends back how each was judged. Imports no torch.

The ticket of the answer in hand stands in shared memory, so that the pool knows which answer
hung or killed the process. Results go out with the batch's last answer, but before another
answer is begun when FLUSH_SEC have passed: so a process silent for longer is busy with one.
"""

import ctypes
import importlib
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from async_rollout.channels import Channel, ChannelClosed
from async_rollout.config.reward import RewardConfig
from async_rollout.lifeline import die_with_parent
from async_rollout.rewards.judge import Judge, RewardError, attempt
from async_rollout.tasks.jsonl import read_tasks
from async_rollout.tasks.task import Task
from async_rollout.types import Verdict

FLUSH_SEC = 0.01
IDLE = -1  # in place of a ticket

READY = "ready"
FAILED = "failed"  # (FAILED, traceback): could not start

Answer = tuple[int, str, str]  # ticket, task_id, text
Result = tuple[int, Verdict | str]  # ticket, verdict or why there is none
Judged = tuple[float, float, list[Result]]  # since when, until when (time.monotonic()), what


def work(
    channel: Channel, in_hand: ctypes.c_int64, paths: Sequence[Path], config: RewardConfig, judge: str
) -> None:
    """Body of the process: `in_hand` is shared with the pool, `judge` names what builds the judge."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        try:
            tasks = load_tasks(paths)
            function = load_builder(judge)(config, {task.task_type for task in tasks.values()})
        except Exception:
            channel.send((FAILED, traceback.format_exc()))
            channel.drain()
            return
        channel.send(READY)
        while True:
            for batch in channel.wait():
                _judge_batch(channel, in_hand, batch, tasks, function)
    except ChannelClosed:
        return  # the pool was closed


def load_builder(path: str) -> Callable[[RewardConfig, set[str]], Judge]:
    """What `module:function` names: it makes a judge as `rewards.judge.build_judge` does."""
    module, _, function = path.partition(":")
    return getattr(importlib.import_module(module), function)


def load_tasks(paths: Sequence[Path]) -> dict[str, Task]:
    """The tasks of all files by id. Raises ValueError if two tasks share an id."""
    tasks: dict[str, Task] = {}
    for path in paths:
        for task in read_tasks(path):
            if tasks.setdefault(task.task_id, task) != task:
                raise ValueError(f"{path}: task_id `{task.task_id}` names another task in another file")
    return tasks


def _judge_batch(
    channel: Channel,
    in_hand: ctypes.c_int64,
    batch: list[Answer],
    tasks: dict[str, Task],
    function: Judge,
) -> None:
    results: list[Result] = []
    begun = time.monotonic()
    for ticket, task_id, text in batch:
        now = time.monotonic()
        if results and now - begun > FLUSH_SEC:
            channel.send((begun, now, results))
            results, begun = [], now
        in_hand.value = ticket
        results.append((ticket, _verdict(tasks, function, task_id, text)))
    channel.send((begun, time.monotonic(), results))
    channel.drain()
    in_hand.value = IDLE


def _verdict(tasks: dict[str, Task], function: Judge, task_id: str, text: str) -> Verdict | str:
    if task_id not in tasks:
        return f"task {task_id} is in none of the judge's files"
    try:
        return attempt(function, tasks[task_id], text)
    except RewardError as error:
        return str(error)
