"""Whole cells of mode areal: every file is there and agrees with every other one."""

import csv
import json
from itertools import pairwise

import pytest

from async_rollout.config.cells import config_hash
from async_rollout.config.model import WarmStartConfig
from async_rollout.learner.warm_start import warm_start
from async_rollout.records.cells import read_summary
from tiny_cells import cell_config, run_tiny

FILES = {
    "command.txt", "config.json", "evals.jsonl", "metrics.jsonl", "resources.csv", "results.jsonl",
    "states.jsonl", "stderr.log", "stdout.log", "summary.json", "trace.json",
}  # fmt: skip


KINDS = {"controller", "rollout", "trainer", "parameter_service", "reward"}  # of processes


@pytest.fixture(scope="module")
def causal_cell(tmp_path_factory):
    """A transformer, K = 4, and a rollout worker that reloads whenever it can: samples are interrupted."""
    directory = tmp_path_factory.mktemp("causal")
    small = {"hidden_size": 16, "layers": 1, "heads": 2, "kv_heads": 2, "intermediate_size": 32, "steps": 30}
    warm_start(WarmStartConfig(**small), directory / "model")
    config = cell_config(
        model={"backend": "causal_lm"},
        train={"updates": 16},
        optim={"lr": 0.003},
        rollout={"slots": 16, "min_decode_steps": 1},
        evaluation={"every": 8},
    )
    return run_tiny(config, directory, directory / "model")


@pytest.fixture(params=["areal_cell", "causal_cell"])
def cell(request):
    return request.getfixturevalue(request.param)


def test_files(cell):
    assert {p.name for p in cell.out.iterdir()} == FILES
    assert json.loads((cell.out / "config.json").read_text()) == cell.config.model_dump(mode="json")
    assert "Traceback" not in (cell.out / "stderr.log").read_text()
    assert "done in" in (cell.out / "stdout.log").read_text()
    assert [s["state"] for s in cell.rows("states.jsonl")] == ["setting up", "running", "evaluating", "done"]


def test_summary(cell):
    summary = read_summary(cell.out / "summary.json")
    updates = cell.config.train.updates
    assert summary.status == "done"
    assert summary.policy_version == summary.updates == updates
    assert summary.attempts == 1
    assert summary.config_hash == config_hash(cell.config)
    assert sum(summary.staleness_histogram.trained.values()) == summary.tokens.trained
    assert sum(summary.staleness_histogram.generated.values()) == summary.tokens.generated
    assert summary.staleness_max <= cell.config.k
    assert summary.samples.abandoned == 0
    assert summary.busy_fraction.keys() == summary.cpu_seconds.keys() == KINDS
    assert 0 < sum(summary.cpu_seconds.values()) <= 2 + summary.wall_clock_sec * 5
    assert len(summary.queue_depth_trace.waiting) == updates


def test_metrics(cell):
    """One row a commit, versions in order; its counts agree with the samples."""
    commits, results = cell.rows("metrics.jsonl"), cell.rows("results.jsonl")
    assert [row["version"] for row in commits] == list(range(1, cell.config.train.updates + 1))
    assert all(a["seconds"] <= b["seconds"] for a, b in pairwise(commits))
    for row in commits:
        samples = [r for r in results if r["trained_at"] == row["version"] - 1]
        assert {r["group"] for r in samples} == set(row["groups"])
        assert row["correct"] == sum(r["verdict"] == "pass" for r in samples)
        assert row["correct"] + row["incorrect"] == len(samples) == 16
        assert sum(row["staleness"].values()) == row["trained_tokens"] == sum(r["tokens"] for r in samples)
        assert row["staleness_max"] <= max(r["staleness"] for r in samples)


def test_evaluations(cell):
    every, updates = cell.config.evaluation.every, cell.config.train.updates
    versions = [v for v in range(updates + 1) if v % every == 0 or v == updates]
    assert [row["version"] for row in cell.rows("evals.jsonl")] == versions
    assert [point["version"] for point in cell.summary["eval_pass_rate"]] == versions
    assert all(row["n"] == cell.config.data.eval_size for row in cell.rows("evals.jsonl"))


def test_trace_and_resources(cell):
    events = json.loads((cell.out / "trace.json").read_text())["traceEvents"]
    roles = {e["args"]["name"] for e in events if e["ph"] == "M"}
    workers = {f"rollout-{i}" for i in range(cell.config.rollout.workers)}
    judges = {f"reward-{i}" for i in range(cell.config.reward.workers)}
    assert roles == workers | judges | {"trainer-0", "parameter_service-0", "controller-0"}
    trained = [e["args"]["version"] for e in events if e["name"] == "train"]
    assert trained == list(range(cell.config.train.updates))
    assert all(e["dur"] >= 0 for e in events if e["ph"] == "X")
    with (cell.out / "resources.csv").open() as file:
        samples = list(csv.DictReader(file))
    assert {row["role"] for row in samples} == roles
    answers = sum(e["args"]["answers"] for e in events if e["name"] == "judge")
    assert answers >= cell.summary["samples"]["trained"]
    assert all(float(row["rss_mb"]) > 1 for row in samples)


def test_samples_go_on_under_newer_weights(causal_cell):
    """Interrupted in their middle, with a version for each token, and trained so."""
    summary = causal_cell.summary
    assert summary["interruptions"] > 0
    assert summary["resumed_samples"] >= summary["interruptions"]
    assert summary["recomputed_tokens"] > 0
    assert summary["mixed_version_samples"] > 0
    assert summary["staleness_max"] > 1
    mixed = [r for r in causal_cell.rows("results.jsonl") if len(r["versions"]) > 1]
    assert len(mixed) == summary["mixed_version_samples"]
    for row in mixed:
        versions = [version for version, _ in row["versions"]]
        assert versions == sorted(set(versions))
        assert sum(n for _, n in row["versions"]) == row["tokens"]


def test_it_learns(areal_cell):
    """The tabular policy, in two thousand samples."""
    summary = areal_cell.summary
    assert summary["pass_rate_last"] > summary["pass_rate_first"] + 0.3
    first, *_, last = summary["eval_pass_rate"]
    assert last["sampled"] > first["sampled"]
