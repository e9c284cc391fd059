"""A trainer worker of rank 1 or above: does with rank 0 whatever that one is told, and knows nobody else.

Always: it calls the collectives that rank 0 calls, in the same order; it holds the same weights,
or its part of them, and gives none to anybody.
"""

import time
from pathlib import Path

from async_rollout.channels import Channel
from async_rollout.learner.learner import Learner
from async_rollout.learner.ranks import Rendezvous, together
from async_rollout.records.events import Events
from async_rollout.runtime import messages as say
from async_rollout.runtime.process import settle
from async_rollout.runtime.trainer_worker import build_learner


def main(
    controller: Channel,
    events: Events,
    started: float,
    *,
    config: dict,
    data: Path,
    resumed: Path | None,
    meeting: Rendezvous,
) -> None:
    """Body of the process: build the parts, then follow rank 0 until that one is told to stop."""
    with together():
        learner = build_learner(config, data, resumed, meeting)
        learner.whole()
        version = learner.ranks.tell(None)
        settle()
        controller.send(say.Ready(time.monotonic() - started))
        controller.drain()  # nothing more is said here
        _follow(events, learner, version)


def _follow(events: Events, learner: Learner, version: int) -> None:
    while True:
        asked = time.monotonic()
        order = learner.ranks.tell(None)
        match order:
            case say.Stop():
                return
            case say.Keep():
                with events.span("checkpoint", version=version):
                    learner.whole()
                    learner.state_dict()
            case say.Save():
                learner.whole()
            case say.Batch():
                events.add("wait for batch", asked, time.monotonic())
                with events.span("train", version=version):
                    learner.step(order.groups, version)
                version += 1
                learner.whole()
