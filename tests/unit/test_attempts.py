"""Attempts at a cell: nothing written is lost, and only attempts at the same run are counted."""

import pytest

from async_rollout.records.states import StateLog
from async_rollout.runners.attempts import begin_attempt
from learning import run_config

ROWS = ("results.jsonl", "metrics.jsonl", "evals.jsonl", "stdout.log", "stderr.log")


def write_rows(out, text):
    for name in ROWS:
        (out / name).write_text(text)


def test_attempts_at_one_run_are_counted_and_kept(tmp_path):
    config = run_config()
    assert begin_attempt(tmp_path, config).number == 1
    for attempt in (1, 2):
        StateLog(tmp_path, attempt).enter("running")
        write_rows(tmp_path, f"{attempt}")
        (tmp_path / "summary.json").write_text("{}")
        assert begin_attempt(tmp_path, config).number == attempt + 1
        assert not (tmp_path / "summary.json").exists()
    assert (tmp_path / "results.jsonl.attempt1").read_text() == "1"
    assert (tmp_path / "metrics.jsonl.attempt2").read_text() == "2"


@pytest.mark.parametrize("state", ["done", "collapsed"])
def test_a_finished_run_that_is_forced_again_is_a_first_attempt(tmp_path, state):
    config = run_config()
    begin_attempt(tmp_path, config)
    StateLog(tmp_path, 1).enter(state)
    write_rows(tmp_path, "old")
    assert begin_attempt(tmp_path, config).number == 1
    assert (tmp_path / "earlier1" / "metrics.jsonl").read_text() == "old"
    assert not (tmp_path / "metrics.jsonl").exists()


def test_another_configuration_starts_anew_and_keeps_the_prepared_tasks(tmp_path):
    begin_attempt(tmp_path, run_config(seed=0))
    (tmp_path / "data").mkdir()
    for _ in range(2):
        write_rows(tmp_path, "old")
        begin_attempt(tmp_path, run_config(seed=0))
    assert begin_attempt(tmp_path, run_config(seed=1)).number == 1
    assert (tmp_path / "earlier1" / "metrics.jsonl.attempt2").read_text() == "old"
    assert (tmp_path / "data").is_dir()
    assert not list(tmp_path.glob("*.attempt*"))


def test_a_damaged_config_is_no_run_to_go_on_with(tmp_path):
    begin_attempt(tmp_path, run_config())
    (tmp_path / "config.json").write_text("{")
    write_rows(tmp_path, "old")
    assert begin_attempt(tmp_path, run_config()).number == 1


def test_room_that_was_half_made_is_finished(tmp_path, monkeypatch):
    """Killed between two renames: no row of the old attempt gets into a new one, none is lost."""
    begin_attempt(tmp_path, run_config())
    write_rows(tmp_path, "old")
    rename, renamed = type(tmp_path).rename, []

    def killed(path, target):
        if len(renamed) == 2:
            raise KeyboardInterrupt
        renamed.append(path)
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(type(tmp_path), "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            begin_attempt(tmp_path, run_config())
    assert begin_attempt(tmp_path, run_config()).number == 2
    assert {p.name for p in tmp_path.glob("*.attempt*")} == {f"{name}.attempt1" for name in ROWS}
