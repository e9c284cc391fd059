"""The trainer worker: asks for a batch, trains on it, publishes, tells the controller.

One request is outstanding at a time, and it is sent only after the last commit became
visible. Every batch ends in exactly one commit, also an empty one. Where a batch would come,
it may be told to write a checkpoint instead.
"""

import time
from pathlib import Path
from typing import Any

from async_rollout.channels import Channel
from async_rollout.config.run import RunConfig
from async_rollout.learner.learner import Learner
from async_rollout.policy.interface import Policy
from async_rollout.policy.registry import build_policy
from async_rollout.runtime import messages as say
from async_rollout.runtime.checkpoint import load_training, write_training
from async_rollout.runtime.events import Events
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
) -> None:
    """Body of the process: build the parts, then train until the controller says stop."""
    run = RunConfig.model_validate(config)
    device = run.train.devices[0]
    splits = read_splits(data, run.data)
    policy = build_policy(run, device=device, tasks=splits.train + splits.held_out)
    learner = Learner(run, policy, device)
    publisher = Publisher(policy, store, service)
    version = store.version
    if resumed is None:
        write_snapshot(out, version, policy)
    else:  # rollout workers have the initial weights, and find those of the checkpoint in the store
        load_training(resumed, policy, learner)
        version += 1
        publisher.publish(version)
    controller.send(say.Ready(time.monotonic() - started))
    while True:
        controller.send(say.BatchRequest(version))
        asked = time.monotonic()
        heard = controller.wait()
        if any(isinstance(message, say.Stop) for message in heard):
            return
        if isinstance(heard[0], say.Keep):
            with events.span("checkpoint", version=version):
                sums = write_training(Path(heard[0].place), policy, learner)
            controller.send(say.Kept(version, sums))
            continue
        begun = time.monotonic()
        events.add("wait for batch", asked, begun)
        with events.span("train", version=version):
            metrics = learner.step(heard[0].groups, version)
        version += 1
        with events.span("publish", version=version):
            publisher.publish(version)
        done = time.monotonic()
        if is_due(version, run):
            with events.span("snapshot", version=version):
                write_snapshot(out, version, policy)
        if run.train.save_model and version == run.train.updates:
            policy.save(out / "model")
        controller.send(say.Committed(version, metrics, wait_sec=begun - asked, step_sec=done - begun))
