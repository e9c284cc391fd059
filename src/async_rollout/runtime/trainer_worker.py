"""The trainer worker of rank 0: asks for a batch, trains on it, publishes, tells the controller.

One request is outstanding at a time, and it is sent only after the last commit became
visible. Every batch ends in exactly one commit, also an empty one. Where a batch would come,
it may be told to write a checkpoint instead. What it is told, it tells the other ranks
(trainer_peer.py), which know nobody else.
"""

import time
from pathlib import Path
from typing import Any

import torch

from async_rollout.channels import Channel
from async_rollout.config.run import RunConfig
from async_rollout.learner.learner import Learner
from async_rollout.learner.ranks import ALONE, Ranks, Rendezvous, together
from async_rollout.policy.interface import Policy
from async_rollout.policy.registry import build_policy
from async_rollout.records.events import Events
from async_rollout.runtime import messages as say
from async_rollout.runtime.checkpoint import load_training, write_training
from async_rollout.runtime.process import settle
from async_rollout.runtime.snapshots import is_due, write_snapshot
from async_rollout.runtime.transfer import Transfer
from async_rollout.runtime.weights import WeightStore
from async_rollout.tasks.splits import read_splits


class Publisher:
    """Puts the trainer's weights where readers find them."""

    def __init__(self, policy: Policy, store: WeightStore, service: Channel):
        self._transfer = Transfer(policy.parameters())
        self._store = store
        self._service = service
        store.allocate(self._transfer.layout)
        service.send(say.Announce(self._transfer.layout))

    def publish(self, version: int) -> None:
        """Write the weights as `version`; returns once every reader sees them."""
        granted = self._ask(say.GrantRequest(), say.Granted)
        self._store.write(granted.place, self._transfer.layout, self._transfer.copy_in)
        self._ask(say.Written(version), say.Visible)

    def _ask(self, question: Any, answer: type) -> Any:
        self._service.send(question)
        (message,) = self._service.wait()
        if not isinstance(message, answer):
            raise TypeError(f"the parameter service answered {message!r} to {question!r}")
        return message


def build_learner(config: dict, data: Path, resumed: Path | None, meeting: Rendezvous | None) -> Learner:
    """This rank's learner, as the checkpoint left it if there is one. Without a meeting it is alone."""
    run = RunConfig.model_validate(config)
    rank = meeting.rank if meeting else 0
    device = run.train.devices[rank % len(run.train.devices)]
    splits = read_splits(data, run.data)
    policy = build_policy(run, device=device, tasks=splits.train + splits.held_out)
    ranks = ALONE
    if meeting:
        ranks = Ranks(meeting, torch.device(device), sharded=run.train.parallel == "fsdp2")
    learner = Learner(run, policy, device, ranks)
    if resumed is not None:
        load_training(resumed, policy, learner)
    return learner


def main(
    controller: Channel,
    events: Events,
    started: float,
    *,
    config: dict,
    service: Channel,
    store: WeightStore,
    data: Path,
    out: Path,
    resumed: Path | None,
    meeting: Rendezvous | None = None,
) -> None:
    """Body of the process: build the parts, then train until the controller says stop."""
    with together():
        learner = build_learner(config, data, resumed, meeting)
        policy = learner.whole()
        publisher = Publisher(policy, store, service)
        version = store.version
        if resumed is None:
            write_snapshot(out, version, policy)
        else:  # rollout workers have the initial weights, and find those of the checkpoint in the store
            version += 1
            publisher.publish(version)
        learner.ranks.tell(version)
        settle()
        controller.send(say.Ready(time.monotonic() - started))
        _serve(controller, events, learner, publisher, version, out)


def _serve(
    controller: Channel, events: Events, learner: Learner, publisher: Publisher, version: int, out: Path
) -> None:
    run = learner.config
    while True:
        controller.send(say.BatchRequest(version))
        asked = time.monotonic()
        heard = controller.wait()
        stop = next((message for message in heard if isinstance(message, say.Stop)), None)
        order = learner.ranks.tell(stop or heard[0])
        if isinstance(order, say.Stop):
            return
        if isinstance(order, say.Keep):
            with events.span("checkpoint", version=version):
                sums = write_training(Path(order.place), learner.whole(), learner)
            controller.send(say.Kept(version, sums))
            continue
        if isinstance(order, say.Save):
            learner.whole().save(out / "model")
            controller.send(say.Saved())
            continue
        begun = time.monotonic()
        events.add("wait for batch", asked, begun)
        with events.span("train", version=version):
            metrics = learner.step(order.groups, version)
        if run.stress.commit_sec:
            time.sleep(run.stress.commit_sec)
        version += 1
        with events.span("publish", version=version):
            policy = learner.whole()
            publisher.publish(version)
        done = time.monotonic()
        if is_due(version, run):
            with events.span("snapshot", version=version):
                write_snapshot(out, version, policy)
        controller.send(say.Committed(version, metrics, wait_sec=begun - asked, step_sec=done - begun))
