"""`async-rollout reward-workers start|status|stop DIRECTORY`: workers of `file_shards`, by hand.

DIRECTORY is `reward` in the directory of a cell that is running with `reward.hosts: [hand]`. `start`
starts this host's workers in the background: of all shards, or of those named.
"""

import os
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from async_rollout.config.errors import ConfigError, Problem

_LOOK_SEC = 1.5  # more than a heartbeat


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("action", choices=["start", "status", "stop"])
    parser.add_argument("directory", metavar="DIRECTORY", type=Path)
    parser.add_argument("--shards", metavar="N", type=int, nargs="+", help="only these (start)")


def execute(args: Namespace) -> None:
    """Do it."""
    from async_rollout.rewards.shards import layout

    try:
        config, _ = layout.read_setup(args.directory)
    except FileNotFoundError:
        fix = "name the directory `reward` of a cell that is running with reward.backend: file_shards"
        raise ConfigError([Problem("DIRECTORY", str(args.directory), "holds no setup.json", fix)]) from None
    numbers = args.shards if args.shards else range(config.workers)
    if wrong := [n for n in numbers if not 0 <= n < config.workers]:
        raise ConfigError([Problem("--shards", wrong[0], "no such shard", f"0 to {config.workers - 1}")])
    shards = [layout.Shard(args.directory, number) for number in numbers]
    match args.action:
        case "start":
            _start(args.directory, shards)
        case "status":
            _status(shards)
        case "stop":
            (args.directory / "stop").touch()
            print(f"{args.directory}: workers end after the answer in hand", file=sys.stderr)


def _start(root: Path, shards: list) -> None:
    from async_rollout.rewards.shards.launch import worker_command

    for shard in shards:
        command = worker_command(root, shard.number, shard.next_incarnation())
        log = os.open(shard.home / "worker.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        os.close(log)
        print(f"shard {shard.number}: process {process.pid}")


def _status(shards: list) -> None:
    before = [shard.heartbeat()[0] for shard in shards]
    time.sleep(_LOOK_SEC)
    print("shard  worker  state   waiting  in hand")
    for shard, earlier in zip(shards, before, strict=True):
        text, incarnation, in_hand = shard.heartbeat()
        state = "alive" if text != earlier else "busy" if in_hand else "silent"
        waiting = len(list(shard.requests.glob("*.json")))
        print(f"{shard.number:5}  {incarnation:6}  {state:6}  {waiting:7}  {in_hand or '-'}")
