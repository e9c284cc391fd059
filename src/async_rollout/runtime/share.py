"""A run's share of this machine: GPUs and cores that no other run uses meanwhile.

In a configuration `cuda:0` is the first GPU of the share, whichever that is. A share is taken
before torch is imported, which reads CUDA_VISIBLE_DEVICES when it starts; the run's processes inherit it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from async_rollout.config.cells import Cell
from async_rollout.config.errors import ConfigError, Problem
from async_rollout.config.run import RunConfig
from async_rollout.runtime.lease import leased

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them: numbers or UUIDs.

    As CUDA does it, the list ends at the first entry that names none, such as -1.
    """
    given = os.environ.get(_VISIBLE)
    if given is None:
        return [str(number) for number in range(_gpus_here())]
    names = []
    for name in map(str.strip, given.split(",")):
        if not name.isdecimal() and not name.startswith(("GPU-", "MIG-")):
            break
        names.append(name)
    return names


@contextmanager
def own_gpus(run: RunConfig) -> Iterator[None]:
    """Lease the run's GPUs, and let this process and its children see these alone, while the block runs.

    Waits while others hold them. ConfigError if this process sees fewer than the run names.
    """
    if not run.gpus:
        yield
        return
    visible = visible_gpus()
    if len(visible) < run.gpus:
        raise ConfigError([_too_few(run, visible)])
    before = {name: os.environ.get(name) for name in (_VISIBLE, "CUDA_DEVICE_ORDER")}
    with leased("GPU", visible, run.gpus, _name(run)) as names:
        # numbered as the driver's own tools do it, and not by speed
        os.environ.update({_VISIBLE: ",".join(names), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


@contextmanager
def own_cores(run: RunConfig) -> Iterator[None]:
    """Lease as many cores as the run computes with, and keep to them, while the block runs.

    Nothing happens where the run takes every core that there is, or the system cannot bind a process.
    """
    if not hasattr(os, "sched_setaffinity") or run.cores >= len(allowed := os.sched_getaffinity(0)):
        yield
        return
    with leased("core", [str(core) for core in sorted(allowed)], run.cores, _name(run)) as cores:
        os.sched_setaffinity(0, map(int, cores))
        try:
            yield
        finally:
            os.sched_setaffinity(0, allowed)


def _gpus_here() -> int:
    """GPUs of this machine or container. Asks the driver, or counts its files: torch is not loaded."""
    try:
        import pynvml
    except ImportError:
        return len(list(Path("/dev").glob("nvidia[0-9]*")))
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return 0
    try:
        return pynvml.nvmlDeviceGetCount()
    finally:
        pynvml.nvmlShutdown()


def _too_few(run: RunConfig, visible: list[str]) -> Problem:
    places = {"train.devices": run.train.devices, "rollout.devices": run.rollout.devices}
    key, devices = next(
        (key, devices)
        for key, devices in places.items()
        if any(d != "cpu" and int(d.partition(":")[2] or 0) >= len(visible) for d in devices)
    )
    given = os.environ.get(_VISIBLE)
    seen = f"{_VISIBLE}={given}" if given is not None else "this machine"
    what = f"the run needs {run.gpus} GPUs, {seen} has {len(visible)}"
    return Problem(key, devices, what, "ask for more GPUs, or set it to cpu or to devices that are there")


def _name(run: RunConfig) -> str:
    cell = Cell.of(run)
    return f"{run.experiment}/{cell.dataset_slug}/{cell.id}"
