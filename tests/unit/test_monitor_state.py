"""The eight states of a cell, from what runs write."""

import os
import subprocess
import sys

import pytest

from async_rollout.monitor.cell import WatchedCell
from async_rollout.monitor.places import find_places
from async_rollout.monitor.watcher import Watcher
from monitored import BEGUN, commit, enter, expect, finish, start, touch
from summaries import a_cell

CELL = a_cell()


def card(results, now=BEGUN + 1):
    watcher = Watcher(results)
    watcher.scan(now)
    (card,) = watcher.listing().cells
    return card


def kinds(card):
    return {finding.kind for finding in card.findings}


@pytest.fixture
def running(tmp_path):
    """A cell with ten commits, one a second."""
    directory = start(tmp_path, CELL)
    enter(directory, "setting up")
    enter(directory, "running")
    commit(directory, *range(1, 11))
    touch(directory, BEGUN + 10)
    return directory


def test_queued_is_what_was_announced_and_did_not_start(tmp_path):
    expect(tmp_path, CELL)
    queued = card(tmp_path)
    assert (queued.state, queued.k, queued.mode, queued.updates) == ("queued", 4, "areal", 60)
    (tmp_path / "demo" / "sort" / "runs" / CELL.id).mkdir(parents=True)  # the workflow makes it beforehand
    assert card(tmp_path).state == "queued"


def test_setting_up_then_running(tmp_path):
    directory = start(tmp_path, CELL)
    enter(directory, "setting up")
    assert card(tmp_path).state == "setting up"
    enter(directory, "running")
    assert card(tmp_path).state == "running"


def test_a_running_cell_tells_how_far_it_is(running, tmp_path):
    found = card(tmp_path, BEGUN + 11)
    assert (found.state, found.version, found.updates) == ("running", 10, 60)
    assert found.progress == pytest.approx(1 / 6)
    assert found.tokens_per_sec == pytest.approx(1300, rel=0.1)
    assert found.last_sign == BEGUN + 10


def test_stalled_is_ten_times_the_usual_interval_without_a_commit(running, tmp_path):
    assert card(tmp_path, BEGUN + 39).state == "running"  # at least 30 s
    late = card(tmp_path, BEGUN + 41)
    assert late.state == "stalled"
    assert "stalled" in kinds(late)


def test_slow_cells_get_more_time(tmp_path):
    directory = start(tmp_path, CELL)
    enter(directory, "running")
    commit(directory, *range(1, 11), every_sec=20)
    touch(directory, BEGUN + 200)
    assert card(tmp_path, BEGUN + 399).state == "running"
    assert card(tmp_path, BEGUN + 401).state == "stalled"


def test_setting_up_stalls_after_the_configured_patience(tmp_path):
    directory = start(tmp_path, CELL)
    enter(directory, "setting up")
    touch(directory, BEGUN)
    assert card(tmp_path, BEGUN + 899).state == "setting up"
    assert card(tmp_path, BEGUN + 901).state == "stalled"


def test_a_resumed_cell_may_take_as_long_to_set_up_as_the_first_time(running, tmp_path):
    enter(running, "failed", reason="killed", time=BEGUN + 11)
    enter(running, "setting up", attempt=2, time=BEGUN + 12)  # its commits so far are kept
    touch(running, BEGUN + 12)
    assert card(tmp_path, BEGUN + 200).state == "retrying"
    enter(running, "running", attempt=2, time=BEGUN + 200)
    touch(running, BEGUN + 200)
    assert card(tmp_path, BEGUN + 201).state == "running"


def test_evaluation_may_take_an_hour(running, tmp_path):
    enter(running, "evaluating", time=BEGUN + 12)
    touch(running, BEGUN + 12)
    assert card(tmp_path, BEGUN + 3600).state == "running"
    assert card(tmp_path, BEGUN + 3613).state == "stalled"


def test_a_cell_whose_process_is_gone_has_failed(running, tmp_path):
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    enter(running, "running", pid=int(gone.stdout))
    found = card(tmp_path, BEGUN + 11)
    assert (found.state, kinds(found)) == ("failed", {"died"})


def test_processes_of_other_machines_are_not_looked_for(running, tmp_path):
    enter(running, "running", pid=2**22 - 7, host="another-machine")
    assert card(tmp_path, BEGUN + 11).state == "running"


@pytest.mark.parametrize(
    "reason", ["out_of_memory", "killed", "non_finite", "reward", "disk_full", "stopped"]
)
def test_failed_tells_why(running, tmp_path, reason):
    enter(running, "failed", reason=reason, detail="the last words")
    found = card(tmp_path, BEGUN + 11)
    assert found.state == "failed"
    assert [f.level for f in found.findings if f.kind == reason] == ["error"]
    assert "the last words" in found.findings[0].text


def test_words_in_a_log_mean_nothing(running, tmp_path):
    (running / "stderr.log").write_text("CUDA out of memory\nnan\nTraceback\nKilled\n")
    found = card(tmp_path, BEGUN + 11)
    assert (found.state, found.findings) == ("running", [])


def test_a_second_attempt_is_retrying_until_it_commits(running, tmp_path):
    enter(running, "failed", reason="killed")
    (running / "metrics.jsonl").rename(running / "metrics.jsonl.attempt1")
    enter(running, "setting up", attempt=2)
    found = card(tmp_path)
    assert (found.state, found.attempts, found.version) == ("retrying", 2, 0)
    assert [f.level for f in found.findings] == ["note"]  # what happened before is no alarm
    enter(running, "running", attempt=2)
    assert card(tmp_path).state == "retrying"
    commit(running, 1)
    assert card(tmp_path).state == "running"


@pytest.mark.parametrize("status", ["done", "collapsed"])
def test_done_and_collapsed_are_what_a_sound_summary_says(running, tmp_path, status):
    finish(running, CELL, status=status)
    found = card(tmp_path, BEGUN + 1e6)
    assert found.state == status
    assert found.version == 60


def test_done_without_a_summary_is_a_failure(running, tmp_path):
    enter(running, "done")
    assert kinds(card(tmp_path)) == {"summary_missing"}
    (running / "summary.json").write_text('{"schema_version": 1')
    found = card(tmp_path)
    assert (found.state, kinds(found)) == ("failed", {"summary_unusable"})


def test_a_new_attempt_after_done_starts_over(running, tmp_path):
    finish(running, CELL)
    watcher = Watcher(tmp_path)
    watcher.scan(BEGUN)
    (running / "summary.json").unlink()
    os.rename(running / "metrics.jsonl", running / "metrics.jsonl.attempt1")
    enter(running, "setting up", attempt=2)
    watcher.scan(BEGUN + 100)
    assert [c.state for c in watcher.listing().cells] == ["retrying"]


def test_the_history_of_a_cell_that_is_done_is_read_when_asked_for(running, tmp_path):
    finish(running, CELL)
    (place,) = find_places(tmp_path).values()
    cell = WatchedCell(place)
    cell.look()
    assert cell.recent.last is None
    cell.want_history()
    assert cell.recent.last.version == 10
    commit(running, 11)  # from then on it is followed
    cell.look()
    assert cell.recent.last.version == 11
