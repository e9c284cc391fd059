"""The terminal's view: the states of the page."""

import pytest

from async_rollout.cli import main
from async_rollout.monitor.status import status
from async_rollout.monitor.text import duration
from monitored import BEGUN, commit, enter, expect, finish, start, touch
from summaries import a_cell


@pytest.fixture
def results(tmp_path):
    cells = [a_cell(seed=seed) for seed in range(4)]
    expect(tmp_path, *cells)
    for cell in cells[1:]:
        directory = start(tmp_path, cell)
        enter(directory, "running")
        commit(directory, 1, 2, 3)
        touch(directory, BEGUN)
    finish(directory, cells[3])
    enter(start(tmp_path, cells[2]), "failed", reason="non_finite", detail="loss\x1b[31m is nan")
    return tmp_path


def test_the_troubled_cells_come_first(results):
    lines = status(results, 200, BEGUN + 5).splitlines()
    assert lines[0] == "4 cells: 1 queued, 1 running, 1 failed, 1 done"
    assert [line.split()[0] for line in lines[2:6]] == ["failed", "running", "queued", "done"]
    assert "3/60" in lines[3]
    assert "not finite" in lines[6]


def test_control_characters_do_not_reach_the_terminal(results):
    assert "\x1b" not in status(results, 200, BEGUN)


def test_lines_fit_the_terminal(results):
    assert max(map(len, status(results, 40, BEGUN).splitlines())) <= 40


def test_nothing_is_said_to_be_nothing(tmp_path):
    assert status(tmp_path, 80).startswith("no cells")


@pytest.mark.parametrize(
    ("seconds", "text"), [(-3, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (2e5, "2 d")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_the_command(results, capsys, tmp_path):
    assert main(["status", str(results)]) == 0
    assert "not finite" in capsys.readouterr().out
    assert main(["status", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err
