"""Bodies of processes for tests of the supervisor: they say they are ready, or fail, in all ways."""

import os
import signal
import time

from async_rollout.channels import Channel, poll
from async_rollout.runtime.messages import Ready, Stop


def serves(controller: Channel, events, started: float) -> None:
    """A good worker: echoes until it is told to stop."""
    controller.send(Ready(time.monotonic() - started))
    while True:
        for message in controller.wait():
            if isinstance(message, Stop):
                return
            controller.send(message)


def raises(controller: Channel, events, started: float, *, when_told: bool = False) -> None:
    """Fails while it builds its parts, or later."""
    if when_told:
        controller.send(Ready(0.0))
        controller.wait()
    raise ValueError("the weights do not fit")


def never_ready(controller: Channel, events, started: float) -> None:
    """Builds its parts for ever."""
    time.sleep(600)


def deaf(controller: Channel, events, started: float) -> None:
    """Ready, then reads nothing and ignores SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    controller.send(Ready(0.0))
    time.sleep(600)


def dies(controller: Channel, events, started: float) -> None:
    """Killed as soon as it is told anything."""
    controller.send(Ready(0.0))
    controller.wait()
    os.kill(os.getpid(), signal.SIGKILL)


def depends(controller: Channel, events, started: float, *, peer: Channel) -> None:
    """Ends when its peer does."""
    controller.send(Ready(0.0))
    while True:
        poll([controller, peer], None)
        if any(isinstance(m, Stop) for m in controller.receive()):
            return
        peer.receive()


def raises_with_peer(controller: Channel, events, started: float, *, peer: Channel) -> None:
    """Fails when told; its peer sees the channel close, and may be gone first."""
    controller.send(Ready(0.0))
    controller.wait()
    peer.close()
    time.sleep(0.3)
    raise ValueError("the weights do not fit")
