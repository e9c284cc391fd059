"""Commits for other trackers."""

import sys
from types import SimpleNamespace

import pytest

from async_rollout.cli import main
from monitored import commit, evaluate, start, tear
from summaries import a_cell

CELL = a_cell()
ID = f"demo/sort/{CELL.id}"


@pytest.fixture
def results(tmp_path):
    directory = start(tmp_path / "results", CELL)
    commit(directory, 1, 2, 3, kl=0.25)
    evaluate(directory, 0, 3)
    tear(directory / "metrics.jsonl")
    return tmp_path / "results"


def test_tensorboard_reads_back_what_was_exported(results, tmp_path):
    pytest.importorskip("tensorboard", reason="the tensorboard extra is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for _ in range(2):  # again replaces it
        assert main(["export", "tensorboard", str(results), "--out", str(tmp_path / "tb"), "--cell", ID]) == 0
    read = EventAccumulator(str(tmp_path / "tb" / ID))
    read.Reload()
    assert [(point.step, point.value) for point in read.Scalars("train/kl")] == [
        (1, 0.25),
        (2, 0.25),
        (3, 0.25),
    ]
    assert [point.step for point in read.Scalars("eval/sampled")] == [0, 3]
    assert "train/version" not in read.Tags()["scalars"]


@pytest.mark.parametrize("tool", ["trackio", "wandb"])
def test_trackers_with_runs_get_one_a_cell(results, monkeypatch, tool):
    logged, begun, ended = [], [], []

    def init(**arguments):
        begun.append(arguments)
        return SimpleNamespace(log=logged.append, finish=lambda: ended.append(True))

    monkeypatch.setitem(sys.modules, tool, SimpleNamespace(init=init))
    assert main(["export", tool, str(results), "--project", "mine"]) == 0
    assert begun[0]["project"] == "mine"
    assert begun[0]["name"] == ID.replace("/", ".")
    assert begun[0]["config"]["seed"] == 0
    assert [row["version"] for row in logged] == [1, 2, 3, 0, 3]
    assert logged[0]["train/kl"] == 0.25
    assert ended == [True]


@pytest.mark.parametrize("tool", ["tensorboard", "trackio", "wandb"])
def test_a_tracker_that_is_not_installed_is_named(results, monkeypatch, capsys, tool):
    monkeypatch.setitem(sys.modules, tool, None)
    for name in [name for name in sys.modules if name.startswith(f"{tool}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["export", tool, str(results)]) == 2
    assert f".[{tool}]" in capsys.readouterr().err


def test_a_cell_that_is_not_there_is_named(results, capsys):
    assert main(["export", "wandb", str(results), "--cell", f"{ID}x"]) == 2
    assert ID in capsys.readouterr().err
