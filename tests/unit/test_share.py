"""A run's share of the machine: the GPUs and cores that it keeps to."""

import json
import os
from types import SimpleNamespace

import pytest

from async_rollout.cli import main
from async_rollout.commands import run as command
from async_rollout.config.errors import ConfigError
from async_rollout.runners import cell
from async_rollout.runtime import lease, share
from async_rollout.runtime.lease import leased
from async_rollout.runtime.share import own_cores, own_gpus, visible_gpus
from tiny_cells import cell_config, run_tiny

TWO = {"train": {"devices": ["cuda:1"]}, "rollout": {"devices": ["cuda:0"]}}
ALLOWED = {2, 3, 5, 7}


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """Four GPUs, of which three are given, and four cores; the cores that were chosen in the end."""
    monkeypatch.setattr(lease.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6,7")
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    bound = [ALLOWED]
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: bound[-1])
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: bound.append(set(cores)))
    return bound


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("2,3", ["2", "3"]),
        (" 2 , GPU-8a", ["2", "GPU-8a"]),
        ("MIG-3f", ["MIG-3f"]),
        ("1,-1,2", ["1"]),
        ("NoDevFiles", []),
        ("", []),
    ],
)
def test_visible_gpus_are_those_of_the_variable(monkeypatch, given, names):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert visible_gpus() == names


def test_visible_gpus_are_all_where_nothing_is_said(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(share, "_gpus_here", lambda: 3)
    assert visible_gpus() == ["0", "1", "2"]


def test_a_run_sees_its_own_gpus_alone_and_others_get_the_rest(monkeypatch):
    with leased("GPU", ["4"], 1, "another"), own_gpus(cell_config(**TWO)):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "6,7"
        assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "4,6,7"
    assert "CUDA_DEVICE_ORDER" not in os.environ


def test_a_run_on_the_cpu_leaves_the_gpus_alone():
    with leased("GPU", ["4", "6", "7"], 3, "another"), own_gpus(cell_config()):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "4,6,7"


def test_fewer_gpus_than_the_run_names_are_an_error_of_the_key(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    said = r"train\.devices.*needs 2 GPUs, CUDA_VISIBLE_DEVICES=5 has 1"
    with pytest.raises(ConfigError, match=said), own_gpus(cell_config(**TWO)):
        pass


@pytest.mark.parametrize("mode", ["sync", "lagged"])
def test_a_run_of_one_process_takes_one_gpu_whatever_its_number(monkeypatch, mode):
    """The others that it names are for other modes of its sweep; it is still the run that it was."""
    run = cell_config(**TWO, mode=mode, k=0)
    assert run.gpus == 1
    placed = run.placed()
    assert (placed.train.devices, placed.rollout.devices) == (["cuda:0"], ["cuda:0"])
    assert run.train.devices == ["cuda:1"]
    assert placed.model_copy(update={"train": run.train, "rollout": run.rollout}) == run
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    with own_gpus(run):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "5"


def test_a_cell_of_one_process_computes_on_the_gpu_that_it_leased(tmp_path, monkeypatch):
    """And its directory holds the configuration as it was given."""

    class Seen(Exception):
        pass

    def runs(loaded, *_):
        raise Seen(loaded.train.devices)

    monkeypatch.setattr(cell, "import_module", lambda name: SimpleNamespace(run=runs))
    with pytest.raises(Seen, match=r"\['cuda:0'\]"):
        run_tiny(cell_config(**TWO, mode="sync", k=0), tmp_path)
    assert json.loads((tmp_path / "cell/config.json").read_text())["train"]["devices"] == ["cuda:1"]


def test_who_trains_on_the_cpu_in_one_process_takes_none():
    run = cell_config(train={"devices": ["cpu"]}, rollout={"devices": ["cuda:3"]}, mode="sync", k=0)
    assert run.gpus == 0
    assert run.placed().rollout.devices == ["cpu"]


@pytest.mark.parametrize("mode", ["areal", "async"])
def test_modes_that_overlap_take_what_they_name(mode):
    run = cell_config(**TWO, mode=mode)
    assert run.gpus == 2
    assert run.placed() is run


def test_two_runs_keep_to_cores_of_their_own(machine):
    with leased("core", ["2"], 1, "another"), own_cores(cell_config()):
        assert machine[-1] == {3, 5}
    assert machine[-1] == ALLOWED


def test_judges_have_cores_of_their_own_where_there_are_several(machine):
    with own_cores(cell_config(reward={"workers": 2})):
        assert machine[-1] == {2, 3, 5}


def test_a_run_that_takes_every_core_is_not_bound(machine):
    everything = leased("core", [str(core) for core in ALLOWED], 4, "another")
    with everything, own_cores(cell_config(rollout={"workers": 3})):
        assert machine == [ALLOWED]


def test_the_workflow_s_run_trains_within_its_share(tmp_path, monkeypatch, machine):
    """What it sees is set when training begins, so before torch and any process of the run."""
    seen = []
    monkeypatch.setattr(command, "look_at_gpus", lambda run: None)
    monkeypatch.setattr(
        command, "train", lambda *_: seen.append((os.environ["CUDA_VISIBLE_DEVICES"], machine[-1]))
    )
    config = cell_config(**TWO, k=0).model_dump_json()
    assert main(["run", "--resolved", config, "--data", str(tmp_path), "--out", str(tmp_path / "cell")]) == 0
    assert seen == [("4,6", {2, 3})]
