"""profiles/slurm/driver.sbatch: a whole sweep as one job, with Snakemake inside."""

import json

import pytest
from tormented import EVERY, SOON, SYNC, UPDATES, Checkout

from runs import wait_until


@pytest.mark.long
def test_near_its_time_limit_the_sweep_goes_back_into_the_queue_and_on(slurm, tmp_path):
    checkout = Checkout(tmp_path.resolve())
    sweep = ("--configfile", "sweep.yaml", "--config", "modes=[sync]")
    job = checkout.run("sbatch", "--parsable", "--mem=4G", "profiles/slurm/driver.sbatch", *sweep).strip()
    log = checkout.directory / f"sweep-{job}.log"
    try:
        wait_until(lambda: checkout.commits(SYNC) > EVERY, SOON)
        checkout.run("scancel", "--batch", "--signal=USR1", job)  # what --signal=B:USR1@120 does
        wait_until(lambda: checkout.shown(job)["Restarts"] == "1", SOON)
        wait_until(lambda: checkout.shown(job)["JobState"] in ("COMPLETED", "FAILED"), SOON)
        assert checkout.shown(job)["JobState"] == "COMPLETED", log.read_text()
    finally:
        checkout.run("scancel", "--quiet", job)
    assert "the time limit is near" in log.read_text()
    assert "goes on from version" in (checkout.out(SYNC) / "stdout.log").read_text()
    summary = json.loads((checkout.out(SYNC) / "summary.json").read_text())
    assert (summary["attempts"], summary["updates"]) == (2, UPDATES)
    assert (checkout.directory / "results/tried/report.html").is_file()
