"""What a run of three attempts left (tests/crashed.py): its files say what happened to it."""

import json
from collections import Counter

import pytest

from crashed import SETTINGS, UPDATES, rows
from runs import START_SEC


def test_it_goes_on_from_its_newest_checkpoint(crashed_run):
    seen, run = crashed_run
    assert f"goes on from version {seen['newest'][1:]}," in seen["second"]
    summary = json.loads((run.out / "summary.json").read_text())
    assert (summary["updates"], summary["policy_version"], summary["attempts"]) == (UPDATES, UPDATES, 3)
    assert [r["version"] for r in rows(run, "metrics.jsonl")] == list(range(1, UPDATES + 1))
    assert not (run.out / "checkpoint").exists()


def test_asked_to_stop_it_ends_its_step_and_keeps_it(crashed_run):
    seen, _ = crashed_run
    assert seen["code"] == 143
    assert seen["kept"][0] == f"v{seen['stopped at']}", "no commit is lost"
    assert len(seen["kept"]) == 2


def test_a_damaged_checkpoint_is_named_and_the_older_one_used(crashed_run):
    seen, run = crashed_run
    assert f"damaged checkpoint {run.out / 'checkpoint' / seen['kept'][0]}: training.pt" in run.text()
    assert f"goes on from version {seen['kept'][1][1:]}," in run.text()


def test_what_is_undone_lies_apart_and_is_counted(crashed_run):
    """The rows that were cut, a torn one too, and the time that they took."""
    seen, run = crashed_run
    cut = rows(run, "metrics.jsonl.attempt2")
    assert [r["version"] for r in cut] == list(range(int(seen["kept"][1][1:]) + 1, seen["stopped at"] + 1))
    assert (run.out / "results.jsonl.attempt2").read_text().endswith('{"group": 17, "sam')
    kept = [json.loads(line) for line in seen["lines"]][: int(seen["kept"][1][1:])]
    assert rows(run, "metrics.jsonl")[: len(kept)] == kept
    undone = cut + rows(run, "metrics.jsonl.attempt1")
    summary = json.loads((run.out / "summary.json").read_text())
    assert summary["lost_sec"] == pytest.approx(sum(r["step_sec"] + r["wait_sec"] for r in undone))


def test_the_clock_goes_on(crashed_run):
    """Along the lineage that survives: seconds never fall, and set-up is apart."""
    _, run = crashed_run
    summary = json.loads((run.out / "summary.json").read_text())
    seconds = [r["seconds"] for r in rows(run, "metrics.jsonl")]
    assert seconds == sorted(seconds)
    assert seconds[-1] == pytest.approx(summary["wall_clock_sec"], abs=1.0)
    assert 0 < summary["setup_wall_clock_sec"] < START_SEC


def test_a_killed_rollout_worker_is_replaced(crashed_run):
    _, run = crashed_run
    assert "rollout-0 (pid" in run.text()
    assert "killed by signal 9: replaced" in run.text()
    assert json.loads((run.out / "summary.json").read_text())["restarts"] == 1


def test_nothing_is_trained_beyond_k(crashed_run):
    """Invariant 1, over all attempts."""
    _, run = crashed_run
    trained = [r for r in rows(run, "results.jsonl") if r["dropped"] is None]
    ages = Counter(r["trained_at"] - version for r in trained for version, _ in r["versions"])
    assert max(ages) <= SETTINGS["k"]
    assert min(ages) >= 0
