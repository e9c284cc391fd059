"""Starts reward workers: on this host, over ssh, or as Slurm job steps.

What is returned is the process on this host; over ssh and under Slurm killing it may leave the
worker, which then ends by itself when it sees the next incarnation, `stop`, or a silent run.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from async_rollout.config.reward import RewardConfig


def launch(root: Path, shard: int, incarnation: int, config: RewardConfig) -> subprocess.Popen | None:
    """Start the worker of a shard where `reward.hosts` puts it; None if that is done by hand."""
    worker = worker_command(root, shard, incarnation)
    host = host_of(shard, config)
    if host == "hand":
        return None
    if host == "localhost":
        command = [*worker, str(os.getpid())]
    elif host == "slurm":
        command = ["srun", "--ntasks=1", "--overlap", "--quiet", *worker]
    else:
        remote = f"cd {shlex.quote(os.getcwd())} && exec {shlex.join(worker)}"
        command = ["ssh", "-oBatchMode=yes", "-oConnectTimeout=10", *config.ssh_options, host, remote]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL)


def host_of(shard: int, config: RewardConfig) -> str:
    """What `reward.hosts` says for the worker of a shard: they take turns."""
    return config.hosts[shard % len(config.hosts)] if config.hosts else "localhost"


def worker_command(root: Path, shard: int, incarnation: int) -> list[str]:
    """What runs as the worker of a shard."""
    module = "async_rollout.rewards.shards.worker"
    return [sys.executable, "-m", module, str(root.resolve()), str(shard), str(incarnation)]
