"""Whether a machine can take a run, against recorded readings of machines that are not here."""

import sys
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file

from async_rollout.cli import main
from async_rollout.commands import run as command
from async_rollout.commands.run import look_at_gpus
from async_rollout.config.cells import canonical_json
from async_rollout.config.errors import ConfigError
from async_rollout.doctor import machine
from async_rollout.doctor.machine import Gpu, Readings, findings, model_mb, read_gpus
from tiny_cells import cell_config

CLEAN = Gpu(0, "H200", 143771, 4, ())
GOOD = Readings((CLEAN, replace(CLEAN, index=1)), 200_000, 500_000, 16, (), {})
PER_CPU = {"SLURM_JOB_ID": "1", "SLURM_CPUS_ON_NODE": "2"}
ON_GPUS = {"train": {"devices": ["cuda:0"]}, "rollout": {"devices": ["cuda:1"]}}


def levels(now, **blocks):
    run = cell_config(**{**ON_GPUS, **blocks})
    return {finding.check: finding for finding in findings(run, now)}


def test_a_clean_machine_is_fit():
    found = levels(GOOD)
    assert {finding.level for finding in found.values()} == {"ok"}
    assert {"cuda:0", "cuda:1", "memory", "disk", "caches", "cores"} == set(found)


@pytest.mark.parametrize(
    ("gpu", "level", "text"),
    [
        (replace(CLEAN, used_mb=41_000), "fail", "by no process: left over"),
        (replace(CLEAN, used_mb=91_000, processes=(77, 78)), "fail", "by process 77, 78"),
        (replace(CLEAN, used_mb=3_000, processes=(77,)), "warn", "by process 77"),
        (replace(CLEAN, used_mb=550), "ok", "550 of 143771 MB"),
    ],
)
def test_a_gpu_that_is_not_clean_is_named(gpu, level, text):
    finding = levels(replace(GOOD, gpus=(gpu, replace(CLEAN, index=1))))["cuda:0"]
    assert finding.level == level
    assert text in finding.text


def test_a_gpu_that_is_not_there_is_named():
    found = levels(replace(GOOD, gpus=(CLEAN,)))
    assert (found["cuda:1"].level, found["cuda:0"].level) == ("fail", "ok")
    assert "has cuda:0" in found["cuda:1"].text


def test_gpus_that_nothing_can_look_at_are_not_called_missing():
    found = levels(replace(GOOD, gpus=None))
    assert found["cuda"].level == "warn"
    assert ".[gpu]" in found["cuda"].text
    assert "cuda:0" not in found


def test_a_run_on_the_cpu_asks_for_no_gpu():
    found = levels(replace(GOOD, gpus=()), train={"devices": ["cpu"]}, rollout={"devices": ["cpu"]})
    assert not [check for check in found if check.startswith("cuda")]


@pytest.mark.parametrize(
    ("change", "check", "level"),
    [
        ({"memory_mb": 500}, "memory", "fail"),
        ({"disk_mb": 100}, "disk", "fail"),
        ({"unwritable": ("/cache",)}, "caches", "fail"),
        ({"cores": 1}, "cores", "warn"),
        ({"job": {"SLURM_JOB_ID": "1", "SLURM_MEM_PER_NODE": "1000"}}, "slurm memory", "fail"),
        ({"job": {"SLURM_JOB_ID": "1", "SLURM_MEM_PER_NODE": "64000"}}, "slurm memory", "ok"),
        ({"job": {"SLURM_JOB_ID": "1", "SLURM_CPUS_ON_NODE": "1"}}, "slurm cores", "warn"),
        ({"job": PER_CPU | {"SLURM_MEM_PER_CPU": "500"}}, "slurm memory", "fail"),
        ({"job": PER_CPU | {"SLURM_MEM_PER_CPU": "9000"}}, "slurm memory", "ok"),
    ],
)
def test_what_is_short_is_named(change, check, level):
    assert levels(replace(GOOD, **change))[check].level == level


@pytest.fixture
def nvml(monkeypatch):
    """A driver with two GPUs, of which the first is handed out under its own number or its name."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    driver = SimpleNamespace(
        NVMLError=RuntimeError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetHandleByUUID={"GPU-second": 1}.__getitem__,
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=1 << 40, used=(5 + handle) << 20),
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [SimpleNamespace(pid=9), SimpleNamespace(pid=3)],
        nvmlDeviceGetName=lambda handle: "H200",
    )
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    return driver


def test_gpus_are_read_by_nvml(nvml, monkeypatch):
    first, second = (Gpu(i, "H200", 1 << 20, 5 + i, (3, 9)) for i in range(2))
    assert read_gpus() == (first, second)

    def fail():
        raise RuntimeError("no driver")

    nvml.nvmlInit = fail
    assert read_gpus() == ()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert read_gpus() is None


@pytest.mark.parametrize("visible", ["1", "GPU-second", "1,-1,0"])
def test_gpus_are_those_that_a_cell_has_leased_by_its_own_numbers(nvml, monkeypatch, visible):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert read_gpus() == (Gpu(0, "H200", 1 << 20, 6, (3, 9)),)


def test_a_model_weighs_what_it_does_in_memory(tmp_path):
    save_file({"a": torch.zeros(1 << 20, dtype=torch.bfloat16)}, tmp_path / "model.safetensors", {"by": "me"})
    for dtype, mb in (("float32", 4), ("bfloat16", 2)):
        assert model_mb(cell_config(model={"id": str(tmp_path), "dtype": dtype})) == mb
    (tmp_path / "model.safetensors").write_text("version of a file that lies elsewhere")
    with pytest.raises(ConfigError, match=r"model\.safetensors'?: is no safetensors file"):
        model_mb(cell_config(model={"id": str(tmp_path)}))


@pytest.mark.parametrize(("readings", "code"), [(GOOD, 0), (replace(GOOD, disk_mb=1), 1)])
def test_the_command_prints_a_line_a_check_and_fails_if_a_run_would(
    tmp_path, monkeypatch, capsys, readings, code
):
    (tmp_path / "sweep.yaml").write_text("experiment: tried\nstaleness_k: [0]\n")
    monkeypatch.setattr(machine, "read_machine", lambda results: readings)
    with pytest.raises(SystemExit, match="1") if code else nullcontext():
        assert main(["preflight", str(tmp_path / "sweep.yaml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(set(lines)) >= 4
    assert any(line.startswith("fail  disk") for line in lines) == bool(code)


def test_where_cells_run_elsewhere_only_what_is_shared_counts(monkeypatch, capsys):
    poor = replace(GOOD, gpus=(), memory_mb=1, cores=1)
    monkeypatch.setattr(machine, "read_machine", lambda results: poor)
    resolved = canonical_json(cell_config(**ON_GPUS))
    with pytest.raises(SystemExit, match="1"):
        main(["preflight", "--resolved", resolved])
    assert "fail  cuda:0" in capsys.readouterr().out
    assert main(["preflight", "--resolved", resolved, "--elsewhere"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["disk:", "caches:"]


def test_this_machine_can_be_read(tmp_path):
    now = machine.read_machine(tmp_path / "not" / "there")
    assert now.memory_mb > 0
    assert now.disk_mb > 0
    assert now.cores > 0


def test_a_gpu_that_frees_itself_in_time_is_taken(monkeypatch):
    """A run that was killed just now still has its memory for a moment."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(command.time, "sleep", lambda seconds: None)
    clean = (CLEAN, replace(CLEAN, index=1))
    readings = iter([(replace(CLEAN, used_mb=41_000), clean[1]), clean])
    monkeypatch.setattr(machine, "read_gpus", lambda: next(readings))
    look_at_gpus(cell_config(**ON_GPUS))
    assert next(readings, None) is None, "it was not looked at again"


@pytest.mark.parametrize("gpus", [(), (replace(CLEAN, used_mb=41_000), replace(CLEAN, index=1))])
def test_a_cell_does_not_start_on_a_gpu_that_is_not_fit(monkeypatch, capsys, gpus):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(machine, "read_gpus", lambda: gpus)
    monkeypatch.setattr(command, "_SETTLE_SEC", 0)
    with pytest.raises(SystemExit, match="1"):
        look_at_gpus(cell_config(**ON_GPUS))
    assert "fail  cuda:0: " in capsys.readouterr().err


def test_a_device_that_torch_does_not_find_is_an_error_of_its_key(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"train\.devices = 'cuda:0': .* finds 0 CUDA devices"):
        look_at_gpus(cell_config(**ON_GPUS))
