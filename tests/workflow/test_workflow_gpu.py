"""Sweeps with GPUs, without any: what a dry run plans, and the look at the machine before cells start."""

import json
import re
from dataclasses import asdict

import pytest

from async_rollout.config.cells import cells
from async_rollout.config.load import load_sweep
from async_rollout.doctor.machine import Gpu

GPU = ("--configfile", "sweep.yaml", "--config", "train={devices: [cuda:0]}", "rollout={devices: [cuda:0]}")
FIT = Gpu(0, "H200", 143_771, 4, ())
CELLS = 4


def looked(output: str) -> set[str]:
    """The cells for which the machine is looked at."""
    return set(re.findall(r"Preflight of cell (\S+ \S+)", output))


def started(output: str) -> set[str]:
    """The cells that are trained."""
    return set(re.findall(r"Cell (\S+ \S+)", output))


@pytest.fixture(scope="module")
def clean(make_checkout):
    return make_checkout()


@pytest.mark.parametrize("name", ["gsm8k", "paper", "math_sao"])
def test_configurations_for_gpus_are_planned_without_gpu_network_or_data(clean, name):
    sweep = load_sweep(clean.directory / f"config/{name}.yaml")
    output = clean.snakemake("-n", "--configfile", f"config/{name}.yaml")
    expected = {f"{cell.dataset_slug} {cell.id}" for cell in cells(sweep)}
    assert started(output) == looked(output) == expected
    assert not (clean.directory / "results").exists()


def test_cells_on_the_cpu_wait_for_no_look_at_the_machine(clean):
    output = clean.snakemake("-n", "--configfile", "sweep.yaml")
    assert (len(looked(output)), len(started(output))) == (0, CELLS)


def test_a_machine_is_looked_at_before_its_cells_and_again_for_those_that_are_left(
    make_checkout, monkeypatch
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")  # for the cells' leases
    checkout = make_checkout()
    names = ["areal-grpo-k0-dec1-s0", "areal-grpo-k4-dec1-s0"]
    asked = (
        *GPU,
        "arms={}",
        "hub={home: kept}",
        "--keep-going",
        "--",
        *(f"results/tried/sort/runs/{n}/summary.json" for n in names),
    )
    checkout.gpus(asdict(FIT) | {"used_mb": 90_000})
    checkout.snakemake(*asked, fails="all of them")
    assert checkout.trained() == []
    log = next((checkout.directory / "logs").rglob("*.preflight.log")).read_text()
    assert "fail  cuda:0: H200, 90000 of 143771 MB in use by no process" in log

    checkout.gpus(asdict(FIT))
    output = checkout.snakemake(*asked, fails=names[1])
    assert output.rindex("Preflight of cell") < output.index("Cell sort ")
    assert checkout.trained() == names[:1]
    output = checkout.snakemake(*asked)
    assert looked(output) == started(output) == {f"sort {names[1]}"}
    assert not started(checkout.snakemake("-n", *asked))

    (record,) = (checkout.directory / "results/models").glob("*/warm_start.json")
    assert json.loads(record.read_text()) == {"HF_HOME": str(checkout.directory / "kept")}
