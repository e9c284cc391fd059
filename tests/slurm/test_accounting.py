"""A Slurm that keeps accounts: a job's end is learnt from sacct, since squeue forgets it at once."""

import json

from tormented import EVERY, QUICK, SOON, SYNC, Checkout

from runs import wait_until

UPDATES = 30  # done before Snakemake looks a third time


def test_a_cancelled_job_is_followed_by_another_that_goes_on(slurm_with_accounting, tmp_path):
    checkout = Checkout(tmp_path.resolve())
    only = ("--config", "modes=[sync]", f"train={{updates: {UPDATES}}}", "--until", "run")
    driver, log = checkout.drive("--verbose", "--configfile", "sweep.yaml", *only, *QUICK)
    try:
        wait_until(lambda: checkout.commits(SYNC) > EVERY or driver.poll() is not None, SOON)
        job = checkout.job(SYNC)
        asked = checkout.shown(job.id)
        checkout.run("scancel", job.id)
        assert driver.wait(SOON) == 0, log.read_text()
        wait_until(lambda: not checkout.jobs(), SOON)
        wait_until(lambda: len(states(checkout)) == 2 and "RUNNING" not in states(checkout), SOON)
    finally:
        driver.kill()
        checkout.end_strays()
    assert "command=sacct" in log.read_text(), "that is what Snakemake asked"
    assert states(checkout) == ["CANCELLED", "COMPLETED"]
    assert asked["JobName"].startswith("async-rollout_")
    assert (asked["NumNodes"], asked["NumTasks"], asked["CPUs/Task"]) == ("1", "1", "2")
    assert (asked["MinMemoryNode"], asked["TimeLimit"], asked["Requeue"]) == ("1000M", "01:00:00", "1")
    assert (asked["Partition"], asked["Features"]) == ("preemptible", "fast")
    assert "gpu" not in asked["TRES"]
    summary = json.loads((checkout.out(SYNC) / "summary.json").read_text())
    assert (summary["attempts"], summary["updates"]) == (2, UPDATES)
    assert "goes on from version" in (checkout.out(SYNC) / "stdout.log").read_text()


def states(checkout):
    """What slurmdbd has of this checkout's jobs, the oldest first: it hears of an end seconds later."""
    rows = checkout.run(
        "sacct", "-X", "-n", "-P", "--starttime=now-1hour", "-o", "JobID,State,WorkDir"
    ).splitlines()
    found = [row.split("|", 2) for row in rows]
    return [state.partition(" ")[0] for _, state, place in found if place == str(checkout.directory)]
