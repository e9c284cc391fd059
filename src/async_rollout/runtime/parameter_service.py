"""The parameter service: the only one that makes a policy version visible.

It grants the place that readers do not use, checks that what was written is finite, and
flips. A version is visible to all readers at once or not at all.
"""

import time

from async_rollout.channels import Channel, poll
from async_rollout.records.events import Events
from async_rollout.runtime.layout import WeightLayout
from async_rollout.runtime.messages import (
    Announce,
    Granted,
    GrantRequest,
    Pong,
    Ready,
    Stop,
    Visible,
    Written,
)
from async_rollout.runtime.weights import WeightStore


class NonFiniteWeights(Exception):
    """The trainer wrote NaN or infinity; nobody has seen it."""


class ParameterService:
    """Answers the trainer's messages; holds no weights of its own."""

    def __init__(self, store: WeightStore, events: Events):
        self._store = store
        self._events = events
        self._layout: WeightLayout | None = None
        self._granted = -1

    def answer(self, message: Announce | GrantRequest | Written) -> Granted | Visible | None:
        """What the trainer is to hear. Raises NonFiniteWeights instead of publishing them.

        Raises ValueError if a version does not follow the one that is visible.
        """
        if isinstance(message, Announce):
            self._layout = message.layout
            return None
        if isinstance(message, GrantRequest):
            self._granted = self._store.grant()
            return Granted(self._granted)
        with self._events.span("check and flip", version=message.version):
            self._flip(message.version)
        return Visible(message.version)

    def _flip(self, version: int) -> None:
        if version != self._store.version + 1:
            raise ValueError(f"version {version} was written after version {self._store.version}")
        if name := self._store.non_finite(self._granted, self._layout):
            raise NonFiniteWeights(f"parameter {name} of policy version {version} holds NaN or infinity")
        self._store.flip(self._granted, version)


def main(
    controller: Channel, events: Events, started: float, *, trainer: Channel, store: WeightStore
) -> None:
    """Body of the process: serve the trainer until the controller says stop."""
    service = ParameterService(store, events)
    controller.send(Ready(time.monotonic() - started))
    while True:
        poll([controller, trainer], None)
        for message in controller.receive():
            if isinstance(message, Stop):
                return
            controller.send(Pong())
        for message in trainer.receive():
            if (answer := service.answer(message)) is not None:
                trainer.send(answer)
