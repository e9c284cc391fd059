"""A sweep on Slurm under every fault ends as if nothing had happened, and nobody cleans up by hand."""

import json
import re
import statistics
import sys

import pytest
from tormented import AREAL, CELLS, EVAL_SIZE, EVERY, LAGGED, SYNC, UPDATES, Checkout, torment

from async_rollout.analysis.audit import faults

pytestmark = pytest.mark.long
TIMES = {"seconds", "step_sec", "wait_sec"}


@pytest.fixture(scope="module")
def record(slurm, tmp_path_factory):
    checkout = Checkout(tmp_path_factory.mktemp("slurm").resolve())
    try:
        yield torment(checkout)
    finally:
        checkout.end_strays()


@pytest.fixture(scope="module")
def checkout(record):
    return record.checkout


def summary(checkout, cell):
    return json.loads((checkout.out(cell) / "summary.json").read_text())


@pytest.mark.parametrize("cell", CELLS)
def test_a_job_asks_for_what_its_cell_needs(record, cell):
    asked = record.asked[cell]
    assert asked["JobName"].startswith("async-rollout_")
    assert (asked["NumNodes"], asked["NumTasks"], asked["CPUs/Task"]) == ("1", "1", "2")
    assert (asked["MinMemoryNode"], asked["TimeLimit"], asked["Requeue"]) == ("1000M", "01:00:00", "1")
    assert (asked["Partition"], asked["Features"]) == ("preemptible", "fast")
    assert "gpu" not in asked["TRES"]


def test_everything_ends_in_a_complete_report(record, checkout):
    for cell in CELLS:
        assert summary(checkout, cell)["updates"] == UPDATES
    table = (checkout.directory / "results/tried/sort/tables/summary_headline.csv").read_text()
    assert all(cell in table for cell in CELLS)
    assert "missing" not in table
    assert "<html" in (checkout.directory / "results/tried/report.html").read_text()
    assert not [job for job in checkout.jobs() if job.state in ("RUNNING", "PENDING")]


def test_a_cancelled_job_and_one_at_its_time_limit_are_followed_by_another(record, checkout):
    states = {job.id: job.state for job in checkout.jobs()}
    for fault, state in (("cancelled", "CANCELLED"), ("timeout", "TIMEOUT")):
        cell = record.stricken[fault]
        assert states[record.first_jobs[cell]] == state
        assert len([job for job in checkout.jobs() if job.cell == cell]) >= 2


def test_a_preempted_job_and_one_whose_node_went_down_are_requeued(record, checkout):
    cell = record.stricken["preempted"]
    assert int(checkout.shown(record.first_jobs[cell])["Restarts"]) >= 2


def test_orphans_are_gone_before_anything_is_submitted(record, checkout):
    """What ran on, and what its node's end had put back into the queue."""
    output = record.logs[1]
    cancelled = re.search(r"cancelling jobs of an earlier run: ([\d ]+)", output)
    orphans = cancelled[1].split()
    assert record.orphans
    assert set(record.orphans) <= set(orphans)
    assert cancelled.start() < output.index("has been submitted")
    successors = re.findall(r"SLURM jobid (\d+)", output)
    begun = min(checkout.shown(job)["SubmitTime"] for job in successors)
    assert all(checkout.shown(job)["EndTime"] <= begun for job in orphans)


@pytest.mark.parametrize("cell", CELLS)
def test_attempts_are_counted_and_their_logs_kept(record, checkout, cell):
    attempts = summary(checkout, cell)["attempts"]
    assert attempts >= record.attempts[cell]
    assert attempts >= 2
    out = checkout.out(cell)
    assert len(list(out.glob("stdout.log.attempt*"))) == attempts - 1
    assert (out / "stdout.log").read_text().count("goes on from version") == 1
    assert not (out / "checkpoint").exists()


@pytest.mark.parametrize("cell", [SYNC, LAGGED])
def test_a_fault_costs_at_most_what_came_after_the_last_checkpoint(record, checkout, cell):
    for path in checkout.out(cell).glob("metrics.jsonl.attempt*"):
        assert len(path.read_text().splitlines()) <= EVERY


@pytest.mark.parametrize("cell", [SYNC, LAGGED])
def test_the_end_is_that_of_an_undisturbed_run_bit_for_bit(record, checkout, cell):
    alone = undisturbed(checkout, cell)
    assert left_behind(checkout.out(cell)) == left_behind(alone)
    assert json.loads((alone / "summary.json").read_text())["attempts"] == 1


def last_pass_rate(summary):
    return summary["eval_pass_rate"][-1]["sampled"]


def undisturbed(checkout, cell, *overrides):
    """The directory of the cell, run here from its start to its end."""
    out = checkout.directory / "undisturbed" / cell
    command = (sys.executable, "-m", "async_rollout.cli", "run", "sweep.yaml", "--cell", cell, "--out", out)
    checkout.run(*map(str, command), *overrides)
    return out


def left_behind(out):
    """What decides a run's results, without its times."""
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return {
        "weights": {path.name: path.read_bytes() for path in sorted((out / "model").iterdir())},
        "metrics": [{key: value for key, value in row.items() if key not in TIMES} for row in rows],
        "results": (out / "results.jsonl").read_text(),
    }


@pytest.mark.parametrize("cell", CELLS)
def test_cells_keep_the_invariants_by_their_files(record, checkout, cell):
    assert faults(checkout.out(cell)) == []


def test_areal_stays_within_its_bound(record, checkout):
    ages = summary(checkout, AREAL)["staleness_histogram"]["trained"]
    assert max(map(int, ages)) <= 2


def test_areal_ends_within_the_spread_of_undisturbed_seeds(record, checkout):
    """In the 95 % prediction interval that three of them give, whose spread is at least that of the tasks."""
    seeds = [undisturbed(checkout, AREAL.replace("-s0", f"-s{n}"), "seeds=[0,1,2]") for n in range(3)]
    rates = [last_pass_rate(json.loads((out / "summary.json").read_text())) for out in seeds]
    mean = statistics.mean(rates)
    spread = max(statistics.stdev(rates), (mean * (1 - mean) / EVAL_SIZE) ** 0.5)
    assert abs(last_pass_rate(summary(checkout, AREAL)) - mean) <= 4.303 * spread * (4 / 3) ** 0.5
