"""The parameter service: the only writer of the policy-version clock.

It grants the buffer that readers do not use, checks that what was written is finite, and
flips. A version is visible to all readers at once or not at all.
"""

import time

from async_rollout.channels import Channel, poll
from async_rollout.runtime.events import Events
from async_rollout.runtime.layout import WeightLayout
from async_rollout.runtime.messages import Announce, Granted, GrantRequest, Ready, Stop, Visible, Written
from async_rollout.runtime.weights import WeightStore, first_non_finite

LEASE_PATIENCE_SEC = 5.0
_PAUSE = 0.0005


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
            return Granted(self._grant())
        with self._events.span("check and flip", version=message.version):
            self._flip(message.version)
        return Visible(message.version)

    def _grant(self) -> int:
        """The buffer that is not the front, once no reader holds it.

        A reader that died with a lease would hold it for ever: after LEASE_PATIENCE_SEC the
        buffer is granted all the same, and a live reader notices and copies again.
        """
        clock = self._store.clock
        back = clock.back
        deadline = time.monotonic() + LEASE_PATIENCE_SEC
        while clock.leased(back) and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        clock.open_buffer(back)
        self._granted = back
        return back

    def _flip(self, version: int) -> None:
        if version != self._store.clock.version + 1:
            raise ValueError(f"version {version} was written after version {self._store.clock.version}")
        buffer = self._store.buffer(self._granted, self._layout)
        if name := first_non_finite(buffer, self._layout):
            raise NonFiniteWeights(f"parameter {name} of policy version {version} holds NaN or infinity")
        self._store.clock.close_buffer(self._granted, version)


def main(
    controller: Channel, events: Events, started: float, *, trainer: Channel, store: WeightStore
) -> None:
    """Body of the process: serve the trainer until the controller says stop."""
    service = ParameterService(store, events)
    controller.send(Ready(time.monotonic() - started))
    while True:
        poll([controller, trainer], None)
        if any(isinstance(m, Stop) for m in controller.receive()):
            return
        for message in trainer.receive():
            if (answer := service.answer(message)) is not None:
                trainer.send(answer)
