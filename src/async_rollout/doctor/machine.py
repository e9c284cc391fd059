"""Whether a machine can take a run now: its GPUs, memory, disk, caches and the limits of its job.

Findings are functions of readings, which are taken apart from them: so they can be checked
against readings of machines that are not here.
"""

import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
from safetensors import SafetensorError, safe_open

from async_rollout.config.errors import ConfigError, Problem
from async_rollout.config.run import RunConfig
from async_rollout.doctor.finding import Finding, judged
from async_rollout.runtime.share import visible_gpus

_CONTEXT_MB = 600  # that a GPU shows as used with nothing on it: driver, ECC, display
_LEAST_FREE = 0.5  # of a GPU's memory beside others, for a run that expects it to itself
_DISK_MB = 2000  # rows, traces, figures
_MB = 1 << 20
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as it is now; MB."""

    index: int
    name: str
    total_mb: int
    used_mb: int
    processes: tuple[int, ...]  # ids of processes with memory on it


@dataclass(frozen=True, slots=True)
class Readings:
    """One machine as it is now; MB."""

    gpus: tuple[Gpu, ...] | None  # None: nothing here can tell
    memory_mb: int  # available
    disk_mb: int  # free where results go
    cores: int
    unwritable: tuple[str, ...]  # cache directories that cannot be written
    job: Mapping[str, str]  # Slurm's variables of the job, empty outside of one


def findings(run: RunConfig, now: Readings) -> Iterator[Finding]:
    """Every check of one run against the readings of the machine that it would run on."""
    yield from gpu_findings(run, now.gpus)
    need = memory_mb(run)
    yield judged("memory", need <= now.memory_mb, f"about {need} MB of {now.memory_mb} MB available")
    yield from shared_findings(run, now)
    yield judged("cores", run.cores <= now.cores, f"computes with {run.cores} of {now.cores}", "warn")
    yield from _job(need, run.cores, now.job)


def shared_findings(run: RunConfig, now: Readings) -> Iterator[Finding]:
    """The checks that hold on every machine that shares this one's files: where results and caches lie."""
    disk = _DISK_MB + model_mb(run) * (2 + run.train.save_model)
    yield judged("disk", disk <= now.disk_mb, f"about {disk} MB of {now.disk_mb} MB free for results")
    text = f"cannot be written: {', '.join(now.unwritable)}" if now.unwritable else "can be written"
    yield judged("caches", not now.unwritable, text)


def memory_mb(run: RunConfig) -> int:
    """Host memory of a run, roughly: its processes, and their copies of a model that is on the CPU."""
    copies = run.rollout.workers * (run.rollout.devices[0] == "cpu")
    copies += 5 * run.train.workers * (run.train.devices[0] == "cpu")  # weights, gradient, moments, snapshot
    processes = run.rollout.workers + run.train.workers - 1
    return 1500 + 800 * processes + (copies + 3) * model_mb(run)


def model_mb(run: RunConfig) -> int:
    """Size of the model's weights in `model.dtype`, whatever it is on disk; 0 while they are not there."""
    values = sum(map(_values_in, Path(run.model.id).glob("*.safetensors")))
    return values * _BYTES[run.model.dtype] // _MB


def _values_in(path: Path) -> int:
    """Numbers in a safetensors file, by its header alone."""
    try:
        with safe_open(path, "numpy") as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except SafetensorError as error:
        problem = Problem("model.id", str(path), f"is no safetensors file ({error})", "fetch the model again")
        raise ConfigError([problem]) from None


def gpu_findings(run: RunConfig, gpus: tuple[Gpu, ...] | None) -> Iterator[Finding]:
    """One for each GPU that the run wants; nothing for a run on the CPU."""
    wanted = {_number(d) for d in (*run.train.devices, *run.rollout.devices) if d.startswith("cuda")}
    if wanted and gpus is None:
        yield Finding("warn", "cuda", "cannot be looked at: pip install -e '.[gpu]'")
        return
    known = {gpu.index: gpu for gpu in gpus or ()}
    for index in sorted(wanted):
        check = f"cuda:{index}"
        if index not in known:
            there = ", ".join(f"cuda:{i}" for i in known) or "none"
            yield Finding("fail", check, f"is not there; this machine has {there}")
            continue
        gpu = known[index]
        free = gpu.total_mb - gpu.used_mb
        state = f"{gpu.name}, {gpu.used_mb} of {gpu.total_mb} MB in use"
        if gpu.processes:
            holders = ", ".join(map(str, gpu.processes))
            level = "warn" if free >= _LEAST_FREE * gpu.total_mb else "fail"
            yield Finding(level, check, f"{state} by process {holders}")
        elif gpu.used_mb > _CONTEXT_MB:
            yield Finding("fail", check, f"{state} by no process: left over from one that was killed")
        else:
            yield Finding("ok", check, state)


def _job(need: int, cores: int, job: Mapping[str, str]) -> Iterator[Finding]:
    """What Slurm allows; nothing outside of a job."""
    if "SLURM_JOB_ID" not in job:
        return
    per_cpu = int(job.get("SLURM_MEM_PER_CPU", 0)) * int(job.get("SLURM_CPUS_ON_NODE", 0))
    if memory := int(job.get("SLURM_MEM_PER_NODE", per_cpu)):
        yield judged("slurm memory", need <= memory, f"about {need} MB of the job's {memory} MB")
    if limit := job.get("SLURM_CPUS_ON_NODE"):
        yield judged(
            "slurm cores", cores <= int(limit), f"computes with {cores} of the job's {limit}", "warn"
        )


def _number(device: str) -> int:
    return int(device.partition(":")[2] or 0)


def read_machine(results: Path) -> Readings:
    """This machine as it is now; `results` need not exist."""
    place = next(path for path in (results, *results.resolve().parents) if path.exists())
    caches = [os.environ.get("HF_HOME", "~/.cache/huggingface"), tempfile.gettempdir()]
    return Readings(
        gpus=read_gpus(),
        memory_mb=psutil.virtual_memory().available // _MB,
        disk_mb=shutil.disk_usage(place).free // _MB,
        cores=len(os.sched_getaffinity(0)),
        unwritable=tuple(path for path in caches if not _writable(Path(path).expanduser())),
        job={name: value for name, value in os.environ.items() if name.startswith("SLURM_")},
    )


def read_gpus() -> tuple[Gpu, ...] | None:
    """The GPUs that this process sees, numbered as it sees them, by NVML.

    None of them where there is no driver; None where nvidia-ml-py (extra `gpu`) is missing.
    """
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    found = []
    for index, name in enumerate(visible_gpus()):
        if name.isdecimal():
            handle = pynvml.nvmlDeviceGetHandleByIndex(int(name))
        else:
            handle = pynvml.nvmlDeviceGetHandleByUUID(name)
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        model = pynvml.nvmlDeviceGetName(handle)
        pids = tuple(sorted(process.pid for process in processes))
        found.append(Gpu(index, str(model), memory.total // _MB, memory.used // _MB, pids))
    pynvml.nvmlShutdown()
    return tuple(found)


def _writable(path: Path) -> bool:
    """Whether files can be made at the path, or it can be made."""
    place = next(p for p in (path, *path.parents) if p.exists())
    return os.access(place, os.W_OK)
