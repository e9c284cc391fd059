"""What every spawned process does before and after its real work. Imports no torch.

A process dies with its parent, leaves Ctrl-C and SIGTERM to the parent, writes what it prints into the
cell's logs, and says why when it fails.
"""

import gc
import importlib
import os
import signal
import sys
import time
import traceback
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from async_rollout.channels import Channel, ChannelClosed
from async_rollout.lifeline import die_with_parent
from async_rollout.records.events import Events
from async_rollout.runtime import messages as say
from async_rollout.runtime.failure import reason_of
from async_rollout.runtime.stopping import SIGNALS

PEER_GONE = 3  # exit code of a process that ends because another one did


@dataclass(frozen=True, slots=True)
class Seat:
    """A process's place in the run."""

    role: str  # kind-index
    target: str  # module:function, called with (controller, events, started, **arguments)
    threads: int
    out: Path
    controller: Channel


def live(seat: Seat, arguments: dict[str, Any]) -> None:
    """Body of a spawned process."""
    started = time.monotonic()
    die_with_parent()
    for number in (signal.SIGINT, *SIGNALS):  # a terminal and a cluster signal all processes of a run
        signal.signal(number, signal.SIG_IGN)
    _log_to(seat.out)
    limit_threads(seat.threads)
    if code := serve(seat, arguments, started):
        raise SystemExit(code)


def serve(seat: Seat, arguments: dict[str, Any], started: float) -> int:
    """Do the worker's real work; returns its exit code, having said why if it failed."""
    try:
        module, function = seat.target.split(":")
        body = getattr(importlib.import_module(module), function)
        with closing(Events(seat.out / "trace" / f"{seat.role}.jsonl", seat.role)) as events:
            body(seat.controller, events, started, **arguments)
        seat.controller.drain()
    except ChannelClosed:
        return PEER_GONE  # the parent, or a worker whose death the parent sees
    except Exception as error:
        with suppress(OSError):  # the disk may be full
            traceback.print_exc()
        with suppress(ChannelClosed):
            seat.controller.send(say.Failed(traceback.format_exc(), reason_of(error)))
            seat.controller.drain()
        return 1
    return 0


def settle() -> None:
    """Set-up is over: what exists now lives as long as the process, so collections pass it by.

    torch and transformers make a million objects; to walk them takes a full collection half a second.
    """
    gc.freeze()


def limit_threads(threads: int) -> None:
    """Compute threads of this process, and of those that it starts.

    OpenMP threads that compete for cores spin: two processes with two threads each on two
    cores are many times slower than with one each.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)  # read when a library is loaded
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads)


def _log_to(out: Path) -> None:
    for descriptor, name in ((1, "stdout.log"), (2, "stderr.log")):
        file = os.open(out / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(file, descriptor)
        os.close(file)
