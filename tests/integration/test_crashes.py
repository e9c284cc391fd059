"""One run of mode areal that is killed, stopped, damaged and bereaved, and ends as its files say it must.

Each attempt is a process of its own; what lies in the cell's directory is all that the next one knows.
"""

import json
import os
import signal
from collections import Counter

import pytest

from async_rollout.runtime import checkpoint
from async_rollout.tasks.prepare import prepare
from runs import START_SEC, starting, wait_until
from tiny_cells import cell_config

UPDATES = 160
SETTINGS = {"k": 2, "rollout": {"workers": 2, "slots": 8, "min_decode_steps": 2}, "checkpoint": {"every": 20}}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    prepare("sort", cell_config().data, data)
    with starting(data, lambda: tmp_path_factory.mktemp("run")) as start:
        yield start


@pytest.fixture(scope="module")
def attempts(start):
    """(what the attempts left and said, by name; the last of them). Three at one run."""
    seen = {}
    run = start(updates=UPDATES, **SETTINGS)
    run.wait_for_commits(30)
    run.process.kill()
    run.process.wait()
    wait_until(lambda: not run.left(), 10)
    seen["killed at"] = run.commits()
    seen["newest"] = checkpoint.checkpoints(run.out)[0].name

    run = start(updates=UPDATES, out=run.out, **SETTINGS)
    wait_until(lambda: "goes on from" in run.text(), START_SEC)
    seen["second"] = run.text()
    run.wait_for_commits(seen["killed at"] + 25)
    os.killpg(run.process.pid, signal.SIGUSR1)  # as a cluster does: to every process
    seen["code"], _ = run.end()
    seen["stopped at"] = run.commits()
    seen["kept"] = [place.name for place in checkpoint.checkpoints(run.out)]
    seen["lines"] = (run.out / "metrics.jsonl").read_text().splitlines()
    (run.out / "checkpoint" / seen["kept"][0] / checkpoint.TRAINING).write_bytes(b"torn")
    with (run.out / "results.jsonl").open("a") as file:
        file.write('{"group": 17, "sam')

    run = start(updates=UPDATES, out=run.out, **SETTINGS)
    wait_until(lambda: "goes on from" in run.text(), START_SEC)
    run.wait_for_commits(seen["stopped at"] + 10)
    run.worker("rollout-0").kill()
    assert run.process.wait(timeout=START_SEC) == 0, run.text()
    wait_until(lambda: not run.left(), 10)
    return seen, run


def rows(run, name):
    return [json.loads(line) for line in (run.out / name).read_text().splitlines()]


def test_it_goes_on_from_its_newest_checkpoint(attempts):
    seen, run = attempts
    assert f"goes on from version {seen['newest'][1:]}," in seen["second"]
    summary = json.loads((run.out / "summary.json").read_text())
    assert (summary["updates"], summary["policy_version"], summary["attempts"]) == (UPDATES, UPDATES, 3)
    assert [r["version"] for r in rows(run, "metrics.jsonl")] == list(range(1, UPDATES + 1))
    assert not (run.out / "checkpoint").exists()


def test_asked_to_stop_it_ends_its_step_and_keeps_it(attempts):
    seen, _ = attempts
    assert seen["code"] == 143
    assert seen["kept"][0] == f"v{seen['stopped at']}", "no commit is lost"
    assert len(seen["kept"]) == 2


def test_a_damaged_checkpoint_is_named_and_the_older_one_used(attempts):
    seen, run = attempts
    assert f"damaged checkpoint {run.out / 'checkpoint' / seen['kept'][0]}: training.pt" in run.text()
    assert f"goes on from version {seen['kept'][1][1:]}," in run.text()


def test_what_is_undone_lies_apart_and_is_counted(attempts):
    """The rows that were cut, a torn one too, and the time that they took."""
    seen, run = attempts
    cut = rows(run, "metrics.jsonl.attempt2")
    assert [r["version"] for r in cut] == list(range(int(seen["kept"][1][1:]) + 1, seen["stopped at"] + 1))
    assert (run.out / "results.jsonl.attempt2").read_text().endswith('{"group": 17, "sam')
    kept = [json.loads(line) for line in seen["lines"]][: int(seen["kept"][1][1:])]
    assert rows(run, "metrics.jsonl")[: len(kept)] == kept
    undone = cut + rows(run, "metrics.jsonl.attempt1")
    summary = json.loads((run.out / "summary.json").read_text())
    assert summary["lost_sec"] == pytest.approx(sum(r["step_sec"] + r["wait_sec"] for r in undone))


def test_the_clock_goes_on(attempts):
    """Along the lineage that survives: seconds never fall, and set-up is apart."""
    _, run = attempts
    summary = json.loads((run.out / "summary.json").read_text())
    seconds = [r["seconds"] for r in rows(run, "metrics.jsonl")]
    assert seconds == sorted(seconds)
    assert seconds[-1] == pytest.approx(summary["wall_clock_sec"], abs=1.0)
    assert 0 < summary["setup_wall_clock_sec"] < START_SEC


def test_a_killed_rollout_worker_is_replaced(attempts):
    _, run = attempts
    assert "rollout-0 (pid" in run.text()
    assert "killed by signal 9: replaced" in run.text()
    assert json.loads((run.out / "summary.json").read_text())["restarts"] == 1


def test_nothing_is_trained_beyond_k(attempts):
    """Invariant 1, over all attempts."""
    _, run = attempts
    trained = [r for r in rows(run, "results.jsonl") if r["dropped"] is None]
    ages = Counter(r["trained_at"] - version for r in trained for version, _ in r["versions"])
    assert max(ages) <= SETTINGS["k"]
    assert min(ages) >= 0


def test_nothing_is_lost(attempts):
    """Invariant 10, over all attempts: every group handed out ends once, whole, and once an epoch."""
    _, run = attempts
    results, summary = rows(run, "results.jsonl"), json.loads((run.out / "summary.json").read_text())
    assert set(Counter((r["group"], r["sample"], r["attempt"]) for r in results).values()) == {1}
    trained = Counter(r["group"] for r in results if r["dropped"] is None)
    assert set(trained.values()) == {4}
    assert sorted(trained) == sorted(n for row in rows(run, "metrics.jsonl") for n in row["groups"])
    counts = summary["groups"]
    assert counts["trained"] == len(trained) == 4 * UPDATES
    assert counts["submitted"] == sum(n for what, n in counts.items() if what != "submitted")
    tasks = cell_config().data.train_size
    task_of = {r["group"]: r["task_id"] for r in results}
    in_epoch = Counter((group // tasks, task_of[group]) for group in trained)
    assert set(in_epoch.values()) == {1}
    for flow, weight in ((summary["samples"], lambda r: 1), (summary["tokens"], lambda r: r["tokens"])):
        assert flow["trained"] == sum(weight(r) for r in results if r["dropped"] is None)
        assert flow["generated"] == flow["trained"] + sum(flow["dropped"].values()) + flow["abandoned"]
    assert sum(summary["staleness_histogram"]["generated"].values()) == summary["tokens"]["generated"]
