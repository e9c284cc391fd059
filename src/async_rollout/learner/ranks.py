"""The trainers of one run as a data-parallel group: rank r of n, and all that they do together.

Always: every rank calls the same collectives in the same order; a sum has the same bits on all
ranks, so what is computed from it stays equal everywhere. Rank 0 alone talks to other processes.
"""

import os
import socket
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import Any

import numpy as np
import psutil
import torch
import torch.distributed as dist
from torch import Tensor

from async_rollout.channels import ChannelClosed

LOOPBACK = "127.0.0.1"
_PATIENCE = timedelta(days=30)  # a rank waits for its next batch in a collective; who hangs, others notice


class ReplicasDiffer(RuntimeError):
    """Trainers that must hold the same weights do not: a fault of this program or of the machine."""


class Alone:
    """A trainer without peers: every sum is what it has already."""

    rank = 0
    size = 1
    sharded = False  # True if each rank holds a part of every parameter, so that all must run in step

    def tell(self, thing: Any) -> Any:
        """Rank 0's `thing`, on every rank."""
        return thing

    def total(self, values: Tensor) -> Tensor:
        """Sum over the ranks, element by element."""
        return values

    def largest(self, values: Tensor) -> Tensor:
        """Maximum over the ranks, element by element."""
        return values

    def join(self, arrays: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        """float32 arrays of which each was filled by one rank and holds 0 on all others."""
        return arrays

    def add_gradients(self, parameters: Collection[torch.nn.Parameter]) -> None:
        """Sum each parameter's gradient over the ranks."""

    def compare(self, parameters: Mapping[str, torch.nn.Parameter]) -> None:
        """Raise ReplicasDiffer, naming rank and parameter, if two ranks hold different weights."""


ALONE = Alone()


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """A rank's place in the group, and the loopback port at which the group meets."""

    rank: int
    size: int
    port: int
    listener: socket.socket | None = None  # rank 0: bound to the port


class Ranks(Alone):
    """One of several trainers, or the only one where its parameters are shards."""

    def __init__(self, meeting: Rendezvous, device: torch.device, *, sharded: bool):
        """Meet the others; returns once all are there."""
        self.rank, self.size, self.sharded = meeting.rank, meeting.size, sharded
        for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(name, _loopback_interface())
        store = dist.TCPStore(
            LOOPBACK,
            meeting.port,
            meeting.size,
            is_master=meeting.listener is not None,
            timeout=_PATIENCE,
            wait_for_workers=False,
            master_listen_fd=meeting.listener.detach() if meeting.listener else None,
        )
        on_gpu = device.type == "cuda"
        if on_gpu:
            torch.cuda.set_device(device)
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if on_gpu else "gloo",
            store=store,
            rank=meeting.rank,
            world_size=meeting.size,
            timeout=_PATIENCE,
        )

    def tell(self, thing: Any) -> Any:
        box = [thing]
        dist.broadcast_object_list(box, src=0, device=torch.device("cpu"))
        return box[0]

    def total(self, values: Tensor) -> Tensor:
        dist.all_reduce(values)
        return values

    def largest(self, values: Tensor) -> Tensor:
        dist.all_reduce(values, dist.ReduceOp.MAX)
        return values

    def join(self, arrays: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        if not arrays:
            return arrays
        flat = self.total(torch.from_numpy(np.concatenate(list(arrays.values())))).numpy()
        parts = np.split(flat, np.cumsum([len(a) for a in arrays.values()])[:-1])
        return dict(zip(arrays, parts, strict=True))

    def add_gradients(self, parameters: Collection[torch.nn.Parameter]) -> None:
        """In one all-reduce, in float32 at least. A parameter that no rank has a gradient for keeps none."""
        if self.sharded:  # done while backward ran: see shards.py
            return
        dtype = reduce(torch.promote_types, (p.dtype for p in parameters), torch.float32)
        present = [float(p.grad is not None) for p in parameters]
        parts = [(torch.zeros_like(p) if p.grad is None else p.grad).flatten().to(dtype) for p in parameters]
        device = parts[0].device
        flat = self.total(torch.cat([*parts, torch.tensor(present, dtype=dtype, device=device)]))
        *sums, present = flat.split([*(p.numel() for p in parameters), len(parts)])
        for parameter, gradient, there in zip(parameters, sums, present.tolist(), strict=True):
            parameter.grad = gradient.view_as(parameter).to(parameter.dtype) if there else None

    def compare(self, parameters: Mapping[str, torch.nn.Parameter]) -> None:
        if self.sharded:  # no value is held twice
            return
        mine = torch.stack([_checksum(p.detach()) for p in parameters.values()]).cpu()
        every = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(every, mine)
        for rank, sums in enumerate(every):
            if (odd := (sums != every[0]).nonzero()).numel():
                raise ReplicasDiffer(
                    f"trainer-{rank} and trainer-0 hold different weights, "
                    f"first in parameter {list(parameters)[int(odd[0])]}"
                )


@contextmanager
def together() -> Iterator[None]:
    """Around a rank's work: a collective that failed since a peer is gone raises ChannelClosed.

    So the run tells of the peer's death and not of what it did to the others. The group ends with the block.
    """
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            print(f"a trainer's peer is gone: {error}", file=sys.stderr, flush=True)
            raise ChannelClosed from error
        raise
    if dist.is_initialized():
        dist.destroy_process_group()


def _checksum(values: Tensor) -> Tensor:
    """Sum of the values' bits as integers: 0-d int64, modulo 2⁶⁴."""
    as_integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[values.element_size()]
    return values.view(as_integers).sum(dtype=torch.int64)


def _loopback_interface() -> str:
    """Trainers of one run share a machine: nobody outside of it needs to reach them."""
    return next(
        name for name, found in psutil.net_if_addrs().items() if any(a.address == LOOPBACK for a in found)
    )
