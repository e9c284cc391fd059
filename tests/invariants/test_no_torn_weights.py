"""Invariant 6: readers under a hammering writer only ever see whole versions, by either transport."""

import multiprocessing
import time

import numpy as np
import pytest

from async_rollout.channels import Channel, pair
from async_rollout.records.events import Events
from async_rollout.runtime.disk_weights import DiskWeights
from async_rollout.runtime.layout import WeightLayout, lay_out
from async_rollout.runtime.messages import Announce, GrantRequest, Written
from async_rollout.runtime.parameter_service import ParameterService
from async_rollout.runtime.shared_weights import SharedWeights
from async_rollout.runtime.weights import WeightStore

READERS = 2
SECONDS = 1.5
LAYOUT = lay_out([("head", (300, 200), "float32"), ("scale", (7,), "float32"), ("body", (60000,), "float32")])


def values(buffer, layout: WeightLayout) -> list[np.ndarray]:
    return [np.frombuffer(buffer, np.float32, e.items, e.offset) for e in layout.entries]


def read_for_a_while(result: Channel, store: WeightStore, reader: int, pause: float) -> None:
    """Body of a reader: (versions read, torn reads, most copies that one read took)."""
    versions, torn, most = [], 0, 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        copies: list[list[np.ndarray]] = []

        def copy(buffer, copies=copies):
            views = values(buffer, LAYOUT)
            first = views[0].copy()
            time.sleep(pause)  # the writer gets the time to change what is being read
            copies.append([first, *(v.copy() for v in views[1:])])

        version = store.read(reader, LAYOUT, copy)
        versions.append(version)
        torn += any((part != version).any() for part in copies[-1])
        most = max(most, len(copies))
    result.send((versions, torn, most))
    result.drain()


@pytest.mark.parametrize(
    ("transport", "pause", "leases"),
    [
        ("shared_memory", 0.0, False),
        ("shared_memory", 0.005, True),
        ("disk", 0.0, False),
        ("disk", 0.005, False),
    ],
    ids=["quick readers", "slow readers need leases", "quick readers of files", "slow readers of files"],
)
def test_no_torn_weights(transport, pause, leases, tmp_path):
    context = multiprocessing.get_context("spawn")
    store = DiskWeights.create(tmp_path / "weights", 0) if transport == "disk" else SharedWeights()
    store.allocate(LAYOUT)
    service = ParameterService(store, Events(tmp_path / "events.jsonl", "parameter_service-0"))
    service.answer(Announce(LAYOUT))
    processes, channels = [], []
    for reader in range(READERS):
        ours, theirs = pair()
        process = context.Process(target=read_for_a_while, args=(theirs, store, reader, pause), daemon=True)
        process.start()
        theirs.close()
        processes.append(process)
        channels.append(ours)

    def fill(buffer):
        for part in values(buffer, LAYOUT):
            part[:] = version

    version, deadline = 0, time.monotonic() + 60
    while any(process.is_alive() for process in processes) and time.monotonic() < deadline:
        version += 1
        place = service.answer(GrantRequest()).place
        store.write(place, LAYOUT, fill)
        assert service.answer(Written(version)).version == version
        assert store.version == version
    for channel in channels:
        ((versions, torn, most),) = channel.wait(timeout=10)
        assert torn == 0
        assert len(versions) >= 10, "a reader starved"
        assert len(set(versions)) >= 5, "the weights did not change under the reader"
        assert versions == sorted(versions)
        assert not leases or most > 3, "no read needed a lease"
    store.close()
