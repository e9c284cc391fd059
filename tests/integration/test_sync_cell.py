"""Whole cells of mode sync: a seed repeats them bit for bit, and they learn."""

import re

import pytest

from async_rollout.records.cells import read_summary
from tiny_cells import cell_config, run_tiny

TIMES = {"seconds", "step_sec", "wait_sec"}


def sync_config(**blocks):
    return cell_config(**{"mode": "sync", "k": 0, "train": {"updates": 20, "save_model": True}} | blocks)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The same cell twice."""
    return [run_tiny(sync_config(), tmp_path_factory.mktemp(f"sync{n}")) for n in range(2)]


def test_files_and_summary(cells):
    cell = cells[0]
    names = {p.name for p in cell.out.iterdir()}
    assert names >= {"summary.json", "config.json", "command.txt", "stdout.log", "stderr.log", "trace.json"}
    assert names >= {"results.jsonl", "metrics.jsonl", "evals.jsonl", "resources.csv", "model"}
    summary = read_summary(cell.out / "summary.json")
    assert summary.policy_version == summary.updates == len(cell.rows("metrics.jsonl")) == 20
    assert summary.staleness_histogram.trained == {"0": summary.tokens.trained}
    assert summary.groups == {"submitted": 80, "trained": 80}
    assert summary.interruptions == summary.mixed_version_samples == 0
    assert set(summary.cpu_seconds) == {"sync", "reward"}
    assert summary.wall_clock_sec == cell.rows("metrics.jsonl")[-1]["seconds"]


def test_the_same_seed_gives_the_same_rows(cells):
    one, other = cells
    assert (one.out / "results.jsonl").read_bytes() == (other.out / "results.jsonl").read_bytes()
    rows = [[{k: v for k, v in r.items() if k not in TIMES} for r in c.rows("metrics.jsonl")] for c in cells]
    assert rows[0] == rows[1]
    assert [(r["sampled"], r["greedy"]) for r in one.rows("evals.jsonl")] == [
        (r["sampled"], r["greedy"]) for r in other.rows("evals.jsonl")
    ]


def test_the_same_seed_gives_the_same_weights(cells):
    one, other = ({p.name: p.read_bytes() for p in sorted((cell.out / "model").iterdir())} for cell in cells)
    assert one.keys() == other.keys()
    assert one == other


@pytest.mark.parametrize(("mode", "k"), [("sync", 0), ("lagged", 2)])
def test_a_run_says_what_it_does_between_two_commits(cells, tmp_path, mode, k):
    """Every few seconds, however long a batch takes; here at once. It changes nothing else."""
    blocks = {"supervision": {"heartbeat_sec": 1e-9}, "stress": {"judge_sec": 0.01}}
    often = sync_config(mode=mode, k=k, train={"updates": 3}, **blocks)
    cell = run_tiny(often, tmp_path)
    said = (cell.out / "stdout.log").read_text()
    assert re.search(r"version 0, \d+ of 16 drawn", said)
    assert "version 1, training" in said
    assert re.search(r"version 0, \d+ of 16 answers judged", said)
    assert re.search(r"evaluating version 3, \d+ of 8 answers drawn", said)
    assert re.search(r"evaluating version 3, \d+ of 16 answers judged", said)
    if mode == "sync":
        ours, theirs = ([row["response"] for row in c.rows("results.jsonl")[:48]] for c in (cell, cells[0]))
        assert ours == theirs


def test_another_seed_gives_other_rows(cells, tmp_path):
    other = run_tiny(sync_config(seed=1, train={"updates": 2}), tmp_path)
    theirs, ours = ([r["response"] for r in cell.rows("results.jsonl")[:32]] for cell in (cells[0], other))
    assert theirs != ours


def test_it_learns(cells):
    summary = cells[0].summary
    assert summary["pass_rate_last"] > summary["pass_rate_first"] + 0.3


def test_another_run_in_the_same_place_keeps_the_rows_of_the_first(cells):
    """It is no attempt at the first one, and its own rows start anew."""
    cell = cells[1]
    before = (cell.out / "results.jsonl").read_bytes()
    again = run_tiny(sync_config(train={"updates": 2}), cell.out.parent)
    assert (cell.out / "earlier1" / "results.jsonl").read_bytes() == before
    assert again.summary["attempts"] == 1
    assert len(again.rows("metrics.jsonl")) == 2
    assert not list(cell.out.glob("*.attempt*"))


def test_a_failed_run_leaves_no_summary_and_says_why(tmp_path, monkeypatch):
    """Its rows are readable, its traceback is in stderr.log, and nothing is left open."""
    from async_rollout.learner.learner import Learner

    step = Learner.step

    def fails_in_the_third(self, groups, version):
        if version == 2:
            raise FloatingPointError("loss is nan")
        return step(self, groups, version)

    monkeypatch.setattr(Learner, "step", fails_in_the_third)
    with pytest.raises(FloatingPointError, match="loss is nan"):
        run_tiny(sync_config(), tmp_path)
    out = tmp_path / "cell"
    assert not (out / "summary.json").exists()
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 2
    assert "loss is nan" in (out / "stderr.log").read_text()
    monkeypatch.setattr(Learner, "step", step)
    assert run_tiny(sync_config(), tmp_path).summary["attempts"] == 2
