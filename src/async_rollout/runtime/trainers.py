"""Starts the trainer workers of a run: one alone, or a data-parallel group of several."""

import socket
from pathlib import Path

from async_rollout.channels import Channel
from async_rollout.config.run import RunConfig
from async_rollout.learner.ranks import LOOPBACK, Rendezvous
from async_rollout.runtime.supervisor import Supervisor, Worker
from async_rollout.runtime.weights import WeightStore


def start_trainers(
    supervisor: Supervisor,
    config: RunConfig,
    service: Channel,
    store: WeightStore,
    data: Path,
    out: Path,
    resumed: Path | None,
) -> Worker:
    """Spawn them all; returns rank 0, the only one that others talk to.

    They meet at a port that the kernel chose and that is bound before any of them exists, so
    that nobody can take it meanwhile. Threads of one process (mode `async`) are always one trainer.
    """
    alone = config.mode != "areal" or (config.train.workers, config.train.parallel) == (1, "replicate")
    share = {"config": config.model_dump(mode="json"), "data": data, "resumed": resumed}
    own = {"service": service, "store": store, "out": out}
    target, threads = "async_rollout.runtime.trainer_worker:main", config.train.threads
    if alone:
        return supervisor.start("trainer-0", target, threads=threads, **share, **own)
    size = config.train.workers
    with socket.create_server((LOOPBACK, 0), backlog=size) as listener:
        port = listener.getsockname()[1]
        meeting = Rendezvous(0, size, port, listener)
        leader = supervisor.start("trainer-0", target, threads=threads, meeting=meeting, **share, **own)
    for rank in range(1, size):
        meeting = Rendezvous(rank, size, port)
        target = "async_rollout.runtime.trainer_peer:main"
        supervisor.start(f"trainer-{rank}", target, threads=threads, meeting=meeting, **share)
    return leader
