"""What a run of three attempts left (tests/crashed.py): its files say what happened to it."""

import json
import os
import signal
from collections import Counter

import pytest

from async_rollout.runtime.recorder import Recorder
from async_rollout.tasks.prepare import prepare
from crashed import SETTINGS, UPDATES, rows
from runs import START_SEC, starting, wait_until
from tiny_cells import cell_config, run_tiny


@pytest.fixture
def start(tmp_path):
    prepare("sort", cell_config().data, tmp_path / "data")
    with starting(tmp_path / "data", lambda: tmp_path) as start:
        yield start


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
    assert seconds[-1] == summary["wall_clock_sec"]
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


def test_threads_go_on_too(tmp_path):
    """The same parts, so the same checkpoints: killed before its eighth commit is written down."""

    class Killed(BaseException):
        pass

    def dies(self, version, *arguments, **names):
        if version == 8:
            raise Killed
        return real(self, version, *arguments, **names)

    real, config = (
        Recorder.committed,
        cell_config(mode="async", checkpoint={"every": 3}, train={"updates": 9}, k=2),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "committed", dies)
        with pytest.raises(Killed):
            run_tiny(config, tmp_path)
    cell = run_tiny(config, tmp_path)
    assert (cell.summary["attempts"], cell.summary["updates"]) == (2, 9)
    assert [r["version"] for r in cell.rows("metrics.jsonl.attempt1")] == [7]
    assert cell.summary["staleness_max"] <= 2


@pytest.mark.long
def test_a_hanging_rollout_worker_is_replaced(start):
    """It lives and says nothing; the run neither waits for it nor leaves it behind."""
    run = start(updates=300, rollout={"sample_timeout_sec": 4.0})
    run.wait_for_commits(30)
    os.kill(run.worker("rollout-0").pid, signal.SIGSTOP)
    assert run.process.wait(timeout=START_SEC) == 0, run.text()
    assert json.loads((run.out / "summary.json").read_text())["restarts"] >= 1
    wait_until(lambda: not run.left(), 10)
