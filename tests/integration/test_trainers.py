"""Runs with two trainers: one update a batch, every rank in the books, and the death of one ends the run."""

import csv
import json
import os
import signal

import psutil
import pytest
from safetensors.torch import load_file

from async_rollout.config.model import WarmStartConfig
from async_rollout.learner.warm_start import warm_start
from async_rollout.records.cells import read_summary
from async_rollout.tasks.prepare import prepare
from runs import EXIT_SEC, START_SEC, Run, check_the_end, starting, wait_until
from tiny_cells import cell_config, run_tiny

UPDATES = 200
PAIR = {"train": {"workers": 2}, "checkpoint": {"every": 5}, "supervision": {"restarts": 0}}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    prepare("sort", cell_config().data, data)
    with starting(data, lambda: tmp_path_factory.mktemp("run")) as start:
        yield start


@pytest.fixture(scope="module")
def under_way(start):
    """A run for each rank that is to die, begun together."""
    return {role: start(updates=UPDATES, **PAIR) for role in ("trainer-0", "trainer-1")}


@pytest.fixture(scope="module")
def sharded_cell(tmp_path_factory):
    """A transformer in two shards that compute activations again; K = 0.

    It knows too little to be rewarded, so it moves by weight decay and the penalty alone.
    """
    directory = tmp_path_factory.mktemp("sharded")
    small = {"hidden_size": 16, "layers": 2, "heads": 2, "kv_heads": 2, "intermediate_size": 32, "steps": 30}
    warm_start(WarmStartConfig(**small), directory / "model")
    train = {"workers": 2, "parallel": "fsdp2", "gradient_checkpointing": True, "save_model": True}
    config = cell_config(
        model={"backend": "causal_lm"},
        train=train | {"updates": 6},
        k=0,
        optim={"lr": 0.003, "weight_decay": 1.0},
        kl={"coef": 0.1, "reference": "initial"},
        evaluation={"every": 3},
        checkpoint={"every": 2},
    )
    return run_tiny(config, directory, directory / "model")


def killed(run: Run, role: str) -> None:
    """Kill one rank in mid-run, and see that the run says so, at once, and leaves nobody."""
    run.wait_for_commits(12)
    ranks = [psutil.Process(run.worker(name).pid) for name in ("trainer-0", "trainer-1")]
    pid = run.worker(role).pid
    os.kill(pid, signal.SIGKILL)
    code, seconds = run.end()
    assert code == 1
    assert seconds < EXIT_SEC
    assert f"{role} (pid {pid}) killed by signal 9" in run.text()
    assert "trainer" not in run.text().split("WorkerDied: ", 1)[1].split(role, 1)[0]
    assert json.loads((run.out / "states.jsonl").read_text().splitlines()[-1])["reason"] == "killed"
    wait_until(lambda: not any(rank.is_running() for rank in ranks), 5)
    check_the_end(run)


def test_the_death_of_a_peer_ends_the_run(under_way):
    run = under_way["trainer-1"]
    killed(run, "trainer-1")
    assert not (run.out / "summary.json").exists()


def test_the_death_of_rank_0_ends_the_run_which_goes_on_from_its_checkpoint(under_way, start):
    run = under_way["trainer-0"]
    killed(run, "trainer-0")
    again = start(updates=UPDATES, out=run.out, **PAIR)
    assert again.process.wait(timeout=START_SEC) == 0, again.text()
    summary = read_summary(run.out / "summary.json")
    assert (summary.status, summary.attempts, summary.updates) == ("done", 2, UPDATES)
    assert "goes on from version" in again.text()


def test_every_rank_is_in_the_books(sharded_cell):
    summary = read_summary(sharded_cell.out / "summary.json")
    assert summary.updates == summary.policy_version == 6
    assert summary.samples.trained == 6 * 16
    assert {row["version"] for row in sharded_cell.rows("metrics.jsonl")} == set(range(1, 7))
    trace = json.loads((sharded_cell.out / "trace.json").read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in trace if e["ph"] == "M"}
    for role in ("trainer-0", "trainer-1"):
        own = [e["name"] for e in trace if e["ph"] == "X" and names[e["pid"]] == role]
        assert own.count("train") == own.count("wait for batch") == 6
        assert own.count("checkpoint") == 2
    with (sharded_cell.out / "resources.csv").open() as file:
        assert {"trainer-0", "trainer-1"} <= {row["role"] for row in csv.DictReader(file)}


def test_what_shards_publish_is_whole(sharded_cell):
    """Rollout workers sample from it, every due version is evaluated, and the saved model has moved."""
    rows = sharded_cell.rows("metrics.jsonl")
    assert all(row["optimizer_steps"] == 2 for row in rows)
    assert all(row["first_logratio_max"] < 1e-4 for row in rows), "sampled and scored by the same weights"
    assert [row["version"] for row in sharded_cell.rows("evals.jsonl")] == [0, 3, 6]
    first = load_file(sharded_cell.out.parent / "model" / "model.safetensors")
    last = load_file(sharded_cell.out / "model" / "model.safetensors")
    assert {name: value.shape for name, value in last.items()} == {n: v.shape for n, v in first.items()}
    assert not any(value.equal(last[name]) for name, value in first.items())
