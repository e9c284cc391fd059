"""Jobs that need no fault: what a GPU cell asks for, and cells that share a job."""

import json
import os
import re
import signal

import pytest
from tormented import QUICK, SOON, SYNC, UPDATES, Checkout

from runs import wait_until


def test_a_gpu_cell_asks_for_its_gpus_once_on_one_node(slurm, tmp_path):
    """The job is held, since no GPU is behind it; Ctrl-C takes it out of the queue."""
    checkout = Checkout(tmp_path.resolve())
    given = "train={devices: [cuda:1], updates: 40}", "rollout={devices: [cuda:0]}"
    asked = "cluster={gpu_model: h100, cpus: 3, account: lab, extra: --hold}"
    driver, log = checkout.drive(
        "--configfile", "sweep.yaml", "--config", "modes=[areal]", "experiment=gpus", *given, asked, *QUICK
    )
    try:
        wait_until(lambda: "has been submitted" in log.read_text() or driver.poll() is not None, SOON)
        (job,) = re.findall(r"SLURM jobid (\d+)", log.read_text())
        shown = checkout.shown(job)
        assert (shown["NumNodes"], shown["NumTasks"]) == ("1-1", "1"), "at least and at most one node"
        assert shown["CPUs/Task"] == "3"
        assert shown["Account"] == "lab"
        assert shown["TresPerJob"] == "gres:gpu:h100:2"
        assert shown["TimeLimit"] == "01:00:00"
    finally:
        os.kill(driver.pid, signal.SIGINT)
        driver.wait(SOON)
    assert checkout.shown(job)["JobState"] == "CANCELLED"


@pytest.mark.long
def test_cells_of_a_group_are_one_job(slurm, tmp_path):
    checkout = Checkout(tmp_path.resolve())
    sweep = ("--configfile", "sweep.yaml", "--config", "modes=[sync]", "seeds=[0,1]", "--until", "run")
    driver, log = checkout.drive(*sweep, "--groups", "run=cells", "--group-components", "cells=2", *QUICK)
    try:
        assert driver.wait(SOON) == 0, log.read_text()
    finally:
        driver.kill()
    (job,) = checkout.jobs()
    assert job.state == "COMPLETED"
    for cell in (SYNC, SYNC.replace("-s0", "-s1")):
        assert json.loads((checkout.out(cell) / "summary.json").read_text())["updates"] == UPDATES
