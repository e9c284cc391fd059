"""Claim: publishing weights costs little more than copying them once.

A publication is what lies between a trainer's finished step and the moment when every reader
sees the new version: the parameters are copied into the granted buffer (copy-in) and the
version is flipped. It is held against one plain memory copy of the same size, single-threaded
as is ours, in the same run, in turn. Timed apart: the service's check that all values are
finite, a reader's copy-out, the whole publication through the parameter service's process
with all messages and the check, the same over the `disk` transport and a reader's load from
there, and what the simplest implementation does, which is to pickle arrays into a dict of
multiprocessing.Manager and out of it again.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from async_rollout.channels import pair
from async_rollout.config.supervision import SupervisionConfig
from async_rollout.runtime.disk_weights import DiskWeights
from async_rollout.runtime.shared_weights import SharedWeights
from async_rollout.runtime.supervisor import Supervisor
from async_rollout.runtime.trainer_worker import Publisher
from async_rollout.runtime.transfer import Transfer
from async_rollout.runtime.weights import WeightStore
from measure import Claim, in_turn, options, report, spread

AIM = 0.7  # of the rate of a plain memory copy
SHAPES = {1: (128, 3), 135: (576, 24), 500: (1024, 28)}  # millions of parameters: width, layers


class Weights:
    """A policy that only has parameters."""

    def __init__(self, millions: int):
        """Layers of a transformer's shapes; the embedding takes what is left of the number."""
        width, layers = SHAPES[millions]
        shapes = [(width, width)] * 4 + [(4 * width, width)] * 2 + [(width, 4 * width), (width,), (width,)]
        self._parameters = {f"{i}.{j}": torch.randn(s) for i in range(layers) for j, s in enumerate(shapes)}
        left = millions * 1_000_000 - sum(p.numel() for p in self._parameters.values())
        self._parameters["embedding"] = torch.randn(max(1, left // width), width)

    def parameters(self) -> dict[str, torch.Tensor]:
        """By name."""
        return self._parameters


def timed(run: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


class Publication:
    """The store's steps one by one, in this process."""

    def __init__(self, weights: Weights):
        self.transfer = Transfer(weights.parameters())
        self.layout = self.transfer.layout
        self.store = SharedWeights()
        self.store.allocate(self.layout)

    def publish(self) -> None:
        """Copy-in to flip."""
        clock = self.store.clock
        back = clock.back
        clock.open_buffer(back)
        self.transfer.copy_in(self.store.buffer(back, self.layout))
        clock.close_buffer(back, clock.version + 1)

    def check(self) -> None:
        """All values are finite."""
        assert self.store.non_finite(self.store.clock.front, self.layout) is None

    def read(self) -> None:
        """A reader's copy-out."""
        self.store.read(0, self.layout, self.transfer.copy_out)


def pickled(weights: Weights) -> tuple[float, float]:
    """Seconds to put all weights into a managed dict, and to get them out again."""
    arrays = {name: p.numpy() for name, p in weights.parameters().items()}
    with get_context("spawn").Manager() as manager:
        shared = manager.dict()
        return timed(lambda: shared.update(weights=arrays)), timed(lambda: shared["weights"])


def through_the_service(
    weights: Weights, store: WeightStore, reader: Transfer, repeats: int, directory: Path
) -> tuple[list[float], list[float]]:
    """Seconds of whole publications through the real parameter service, and of a reader after each."""
    supervisor = Supervisor(SupervisionConfig(), directory)
    to_service, to_trainer = pair()
    try:
        supervisor.start(
            "parameter_service-0",
            "async_rollout.runtime.parameter_service:main",
            threads=1,
            trainer=to_trainer,
            store=store,
        )
        supervisor.wait_ready()
        publisher = Publisher(weights, store, to_service)
        for version in (1, 2):  # both buffers' pages are touched
            publisher.publish(version)
        published, read = [], []
        for version in range(3, 3 + repeats):
            published.append(timed(lambda v=version: publisher.publish(v)))
            read.append(timed(lambda: store.read(0, reader.layout, reader.copy_out)))
        return published, read
    finally:
        supervisor.stop()
        store.close()


def measure(millions: int, repeats: int, directory: Path) -> dict:
    """All figures of one size; prints a line."""
    weights = Weights(millions)
    here = Publication(weights)
    source, target = np.ones(here.layout.size, np.uint8), np.empty(here.layout.size, np.uint8)
    arms = {
        "memory copy": lambda: timed(lambda: np.copyto(target, source)),
        "publish": lambda: timed(here.publish),
        "finite check": lambda: timed(here.check),
        "copy-out": lambda: timed(here.read),
    }
    in_turn(arms, 2)  # touch every page
    seconds = in_turn(arms, repeats)
    here.store.close()
    seconds["service"], _ = through_the_service(weights, SharedWeights(), here.transfer, repeats, directory)
    disk = DiskWeights.create(directory / "weights", 0)
    seconds["disk"], seconds["disk read"] = through_the_service(
        weights, disk, here.transfer, min(repeats, 10), directory
    )
    put, get = pickled(weights)
    seconds |= {"pickle in": [put], "pickle out": [get]}
    ratios = [c / p for c, p in zip(seconds["memory copy"], seconds["publish"], strict=True)]
    rate = here.layout.size / 1e9 / statistics.median(seconds["publish"])
    print(
        f"{millions} M parameters, {here.layout.size / 1e6:.0f} MB; ms: "
        + ", ".join(f"{name} {spread([1000 * s for s in values])}" for name, values in seconds.items())
        + f"; {rate:.1f} GB/s, {spread(ratios)} of a memory copy"
    )
    return {"millions": millions, "bytes": here.layout.size, "seconds": seconds, "ratios": ratios}


def main(arguments: list[str]) -> int:
    """Print a line for each size, and the claim's line last."""
    settings = options(__doc__, arguments)
    torch.set_num_threads(1)
    sizes = {1: 50, 135: 5} if settings.quick else {1: 200, 135: 15, 500: 7}
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "trace").mkdir()
        results = [measure(size, repeats, Path(directory)) for size, repeats in sizes.items()]
    slowest = min(statistics.median(r["ratios"]) for r in results)
    claim = Claim("publication of weights as a share of a plain memory copy's rate", slowest, AIM)
    return report(settings, [claim], results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
