"""Layout of the weights, their copies, the clock, and what the parameter service refuses."""

import pickle

import numpy as np
import pytest
import torch

from async_rollout.records.events import Events
from async_rollout.runtime import shared_weights
from async_rollout.runtime.clock import BUFFERS, Clock
from async_rollout.runtime.disk_weights import DiskWeights
from async_rollout.runtime.layout import ALIGNMENT, first_non_finite, lay_out
from async_rollout.runtime.messages import Announce, Granted, GrantRequest, Visible, Written
from async_rollout.runtime.parameter_service import NonFiniteWeights, ParameterService
from async_rollout.runtime.shared_weights import SharedWeights
from async_rollout.runtime.transfer import Transfer, layout_of
from async_rollout.runtime.weights import open_weights
from learning import run_config


def parameters(seed: int = 0) -> dict[str, torch.nn.Parameter]:
    """Three, of odd sizes and all types."""
    generator = torch.Generator().manual_seed(seed)
    shapes = {"a": ((3, 5), torch.float32), "b": ((7,), torch.bfloat16), "c": ((), torch.float16)}
    return {
        name: torch.nn.Parameter(torch.randn(shape, generator=generator).to(dtype))
        for name, (shape, dtype) in shapes.items()
    }


@pytest.fixture
def store():
    store = SharedWeights()
    yield store
    store.close()


@pytest.fixture(params=["shared_memory", "disk"])
def either(request, tmp_path):
    """A store of each transport."""
    store = open_weights(run_config(rollout={"weights": request.param}), tmp_path, 0)
    yield store
    store.close()


@pytest.fixture
def serve(tmp_path):
    return lambda store: ParameterService(store, Events(tmp_path / "events.jsonl", "parameter_service-0"))


@pytest.fixture
def service(store, serve):
    return serve(store)


def publish(store, service, source, version):
    """One commit, as the trainer makes it."""
    transfer = Transfer(source)
    granted = service.answer(GrantRequest())
    store.write(granted.place, transfer.layout, transfer.copy_in)
    return service.answer(Written(version))


def test_entries_are_aligned_in_order_and_apart():
    layout = layout_of(parameters())
    assert [e.name for e in layout.entries] == ["a", "b", "c"]
    end = 0
    for entry in layout.entries:
        assert entry.offset % ALIGNMENT == 0
        assert entry.offset >= end
        end = entry.offset + entry.size
    assert layout.size >= end
    assert [e.items for e in layout.entries] == [15, 7, 1]


def test_an_unknown_type_is_refused_by_name():
    with pytest.raises(ValueError, match=r"head has dtype int8.*float32, bfloat16, float16"):
        lay_out([("head", (2,), "int8")])


def test_tied_weights_are_sent_once():
    """A model that shares its embedding with its head has one entry for both."""
    from tiny_policy import tiny_policy

    policy = tiny_policy()
    layout = layout_of(policy.parameters())
    unique = {p.data_ptr(): p.numel() for p in policy.model.parameters()}
    assert sum(e.items for e in layout.entries) == sum(unique.values())
    assert policy.model.get_input_embeddings().weight is policy.model.get_output_embeddings().weight


def test_what_is_published_is_what_is_read(either, serve):
    """Bit for bit, for each type, over several versions and both buffers; by a store that travelled too."""
    store, service = either, serve(either)
    source, target = parameters(0), parameters(1)
    transfer = Transfer(target)
    store.allocate(transfer.layout)
    service.answer(Announce(transfer.layout))
    for version in range(1, 6):
        with torch.no_grad():
            for parameter in source.values():
                parameter += 1
        assert publish(store, service, source, version) == Visible(version)
        assert store.version == version
        assert store.read(0, transfer.layout, transfer.copy_out) == version
        for name in source:
            assert torch.equal(source[name], target[name])


def test_versions_take_turns_and_the_front_follows_the_version(store, service):
    source = parameters()
    layout = layout_of(source)
    store.allocate(layout)
    service.answer(Announce(layout))
    assert store.clock.front == 0
    for version in (1, 2, 3):
        granted = service.answer(GrantRequest())
        assert granted == Granted(version % BUFFERS)
        assert store.clock.version == version - 1, "nothing is visible before the flip"
        assert store.clock.sequence(granted.place) % 2 == 1
        service.answer(Written(version))
        assert (store.clock.version, store.clock.front) == (version, granted.place)
        assert store.clock.held(granted.place) == version
        assert store.clock.sequence(granted.place) % 2 == 0


def test_a_version_out_of_turn_is_refused(either, serve):
    store, service = either, serve(either)
    source = parameters()
    store.allocate(layout_of(source))
    service.answer(Announce(layout_of(source)))
    with pytest.raises(ValueError, match="version 2 was written after version 0"):
        publish(store, service, source, 2)


@pytest.mark.parametrize("name", ["a", "b", "c"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_not_finite_are_never_published(either, serve, name, value):
    """The error names parameter and version; readers keep the version before."""
    store, service = either, serve(either)
    source = parameters()
    store.allocate(layout_of(source))
    service.answer(Announce(layout_of(source)))
    publish(store, service, source, 1)
    with torch.no_grad():
        source[name].view(-1)[-1] = value
    with pytest.raises(NonFiniteWeights, match=f"parameter {name} of policy version 2 "):
        publish(store, service, source, 2)
    assert store.version == 1
    target = parameters(1)
    transfer = Transfer(target)
    assert store.read(0, transfer.layout, transfer.copy_out) == 1
    assert all(torch.isfinite(p).all() for p in target.values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_largest_finite_values_pass(store, dtype):
    extremes = torch.tensor([torch.finfo(dtype).max, torch.finfo(dtype).min, torch.finfo(dtype).tiny, -0.0])
    transfer = Transfer({"w": torch.nn.Parameter(extremes.to(dtype))})
    store.allocate(transfer.layout)
    transfer.copy_in(store.buffer(0, transfer.layout))
    assert first_non_finite(store.buffer(0, transfer.layout), transfer.layout) is None


def test_a_lease_holds_back_the_grant(store, service, monkeypatch):
    """Until it is given back, or its reader must be dead."""
    slept = []
    monkeypatch.setattr(
        shared_weights.time,
        "sleep",
        lambda _: slept.append(1) if len(slept) < 5 else store.clock.lease(3, None),
    )
    store.clock.lease(3, store.clock.back)
    assert store.clock.leased(store.clock.back)
    service.answer(GrantRequest())
    assert len(slept) == 5


def test_a_dead_readers_lease_ends(store, service, monkeypatch):
    monkeypatch.setattr(shared_weights, "LEASE_PATIENCE_SEC", 0.01)
    store.clock.lease(3, store.clock.back)
    assert service.answer(GrantRequest()) == Granted(1)


def test_a_restarted_reader_has_no_lease(store):
    store.clock.lease(3, store.clock.back)
    store.forget(3)
    assert not store.clock.leased(store.clock.back)


def test_readers_do_not_share_lease_words():
    clock = Clock()
    clock.lease(0, 1)
    clock.lease(1, 0)
    clock.lease(1, None)
    assert (clock.leased(0), clock.leased(1)) == (False, True)
    clock.close()


def test_a_read_gives_its_lease_back_when_the_copy_fails(store):
    layout = lay_out([("w", (4,), "float32")])
    store.allocate(layout)
    copies = []

    def copy(buffer):
        copies.append(1)
        if len(copies) > 3:
            assert store.clock.leased(store.clock.front)
            raise RuntimeError("no room")
        store.clock._words[1] += 2  # the sequence word: as if it was written meanwhile

    with pytest.raises(RuntimeError, match="no room"):
        store.read(0, layout, copy)
    assert not store.clock.leased(0)
    assert not store.clock.leased(1)


def test_the_words_are_shared_memory_not_copies():
    """Two maps of one clock: what one writes the other reads."""
    clock = Clock()
    twin = Clock.__new__(Clock)
    twin.__setstate__(clock.__getstate__())
    clock.close_buffer(1, 1)
    assert (twin.version, twin.front, twin.held(1)) == (1, 1, 1)
    clock.close()


def test_closing_keeps_what_is_mapped():
    store = SharedWeights()
    layout = lay_out([("w", (4,), "float32")])
    store.allocate(layout)
    view = np.frombuffer(store.buffer(0, layout), np.float32)
    store.close()
    assert store.clock.version == 0
    assert view.sum() == 0


@pytest.fixture
def disk(tmp_path):
    return DiskWeights.create(tmp_path / "weights", 7)


def test_on_disk_is_a_whole_safetensors_file_and_the_last_two_versions(disk, serve):
    """The library reads it, each type under its own name; nothing else is left there."""
    from safetensors.torch import load_file

    source, service = parameters(), serve(disk)
    service.answer(Announce(layout_of(source)))
    for version in range(8, 12):
        publish(disk, service, source, version)
    assert sorted(p.name for p in disk._directory.iterdir()) == [
        "VERSION", "v10.safetensors", "v11.safetensors",
    ]  # fmt: skip
    found = load_file(disk._directory / "v11.safetensors")
    assert all(torch.equal(found[name], parameter) for name, parameter in source.items())
    disk.close()
    assert not disk._directory.exists()


def test_a_store_on_disk_travels_as_its_directory(disk, serve):
    source, service = parameters(), serve(pickle.loads(pickle.dumps(disk)))
    service.answer(Announce(layout_of(source)))
    publish(disk, service, source, 8)
    transfer = Transfer(parameters(1))
    far = pickle.loads(pickle.dumps(disk))
    assert (far.version, far.read(0, transfer.layout, transfer.copy_out)) == (8, 8)


def test_a_reader_that_comes_too_late_takes_the_next_version(disk, serve, monkeypatch):
    """Its file is gone when it opens it, since two newer ones have come."""
    source, service = parameters(), serve(disk)
    service.answer(Announce(layout_of(source)))
    publish(disk, service, source, 8)
    transfer, real = Transfer(parameters(1)), DiskWeights.version.fget
    monkeypatch.setattr(DiskWeights, "version", property(lambda self: stale.pop() if stale else real(self)))
    stale = []
    for version in range(9, 12):
        publish(disk, service, source, version)
    stale = [8]
    assert disk.read(0, transfer.layout, transfer.copy_out) == 11


def test_what_an_earlier_run_left_on_disk_is_gone(disk, serve):
    service = serve(disk)
    service.answer(Announce(layout_of(parameters())))
    publish(disk, service, parameters(), 8)
    again = DiskWeights.create(disk._directory, 0)
    assert [p.name for p in disk._directory.iterdir()] == ["VERSION"]
    assert again.version == 0


def test_another_models_file_is_refused(disk, serve):
    service = serve(disk)
    service.answer(Announce(layout_of(parameters())))
    publish(disk, service, parameters(), 8)
    layout = lay_out([("w", (4,), "float32")])
    with pytest.raises(ValueError, match=r"v8.safetensors holds other parameters"):
        disk.read(0, layout, lambda buffer: None)
