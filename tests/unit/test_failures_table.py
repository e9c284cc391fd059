"""What is missing, failed, collapsed, damaged or was tried again has its row; what is queued is no error."""

import json
import os
import platform
import time
from pathlib import Path

import pytest

from async_rollout.analysis.checks import checks
from async_rollout.analysis.collect import Gap, collect
from async_rollout.analysis.standing import standing
from async_rollout.analysis.tables.failures import failures
from async_rollout.commands.sweeps import QUIET_SEC, gathered, is_at_work
from async_rollout.config.cells import cells
from async_rollout.config.load import sweep_from_dict
from async_rollout.config.report import ReportConfig
from async_rollout.records.files import JsonlWriter
from async_rollout.records.states import STATES, STATES_FILE, StateLog, StateRow, last_state
from summaries import a_cell, cell_directory, write_cell


def enter(directory: Path, *states: str, host: str = "elsewhere", pid: int = 1, moment: float = 5.0) -> None:
    log = JsonlWriter(directory / STATES_FILE)
    for state in states:
        reason, detail = ("killed", "by signal 9") if state == "failed" else ("", "")
        log.write(StateRow(moment, state, 1, host, pid, reason, detail))
    log.close()


def swept(results: Path, under_way: bool):
    """A finished cell, one that never began, one in the middle of its run, one that failed, one torn."""
    done, queued, running, failed, torn = cells = [a_cell(seed=seed) for seed in range(5)]
    paths = {cell: cell_directory(results, cell) / "summary.json" for cell in cells}
    write_cell(results, done)
    enter(paths[running].parent, "setting up", "running")
    enter(paths[failed].parent, "running", "failed")
    paths[torn].parent.mkdir(parents=True)
    paths[torn].write_text("{")
    return collect(paths, under_way=under_way), queued, running, failed, torn


@pytest.mark.parametrize(
    ("under_way", "kinds", "levels"),
    [
        (
            True,
            ["queued", "running", "failed", "damaged"],
            {"running": "note", "torn": "warning"},
        ),
        (False, ["missing", "stopped", "failed", "damaged"], {"running": "error", "torn": "error"}),
    ],
)
def test_what_has_not_finished_counts_as_wrong_once_the_sweep_is_over(
    tmp_path: Path, under_way: bool, kinds: list[str], levels: dict[str, str]
) -> None:
    cells, queued, running, failed, torn = swept(tmp_path, under_way)
    table = failures(cells, ReportConfig())
    assert list(table["cell"]) == [queued.id, running.id, failed.id, torn.id]
    assert list(table["kind"]) == kinds
    assert list(table["reason"])[2] == "killed"
    found = {check.cell: check for check in checks(cells)}
    assert found[failed].level == "error"
    assert found[failed].text == "failed at attempt 1: killed: by signal 9"
    assert found[running].level == levels["running"]
    assert found[torn].level == levels["torn"]
    if under_way:
        assert found[None].level == "note"
        assert found[None].text == "the sweep is under way: 1 of 5 cells are queued"
    else:
        assert found[queued].level == "error"


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_a_standing_and_only_work_in_hand_depends_on_the_sweep(state: str) -> None:
    gap = Gap("cell", "missing", "", StateRow(0.0, state, 1, "host", 1, "", ""))
    now, later = standing(gap, under_way=True), standing(gap, under_way=False)
    assert (now == later) == (state in ("failed", "done", "collapsed"))


def test_a_cell_can_have_several_rows(tmp_path: Path) -> None:
    cell = a_cell()
    path = write_cell(tmp_path, cell, status="collapsed", attempts=2, lost_sec=7.5)
    path.with_name("metrics.jsonl").write_text(json.dumps({"version": 1}) + "\n")
    table = failures(collect({cell: path}), ReportConfig())
    assert list(table["kind"]) == ["collapsed", "retried", "damaged"]
    assert set(table["lost_sec"]) == {7.5}
    assert str(tmp_path) not in " ".join(table["detail"])


def test_the_last_state_is_read_and_damage_is_no_state(tmp_path: Path) -> None:
    assert last_state(tmp_path) is None
    StateLog(tmp_path, 3).enter("failed", "reward", "why")
    assert (last_state(tmp_path).attempt, last_state(tmp_path).reason) == (3, "reward")
    (tmp_path / STATES_FILE).write_text('{"time": 1}\n')
    assert last_state(tmp_path) is None


def test_a_sweep_is_under_way_while_a_cell_of_it_is_at_work(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    assert not is_at_work(ours)
    here = {"host": platform.node(), "moment": time.time()}
    enter(ours, "running", pid=os.getpid(), **here)
    assert is_at_work(ours)
    enter(ours, "done", pid=os.getpid(), **here)
    assert not is_at_work(ours)
    enter(ours, "running", pid=2**22 + 1, **here)  # no such process
    assert not is_at_work(ours)
    enter(ours, "running", pid=os.getpid(), host=platform.node(), moment=5.0)  # its number was given again
    assert not is_at_work(ours)
    theirs = tmp_path / "theirs"
    enter(theirs, "running")
    assert is_at_work(theirs)
    old = (theirs / STATES_FILE).stat().st_mtime - QUIET_SEC - 1
    os.utime(theirs / STATES_FILE, (old, old))
    assert not is_at_work(theirs)


def test_who_knows_that_a_sweep_is_over_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sweep = sweep_from_dict({"experiment": "tried", "modes": ["areal"], "staleness_k": [4], "seeds": [0, 1]})
    killed = cells(sweep)[0]
    enter(tmp_path / killed.directory("tried"), "running")  # on a node whose job got SIGKILL
    for over, kinds in ((False, {"running", "queued"}), (True, {"stopped", "missing"})):
        assert set(failures(gathered(sweep, over=over), ReportConfig())["kind"]) == kinds
