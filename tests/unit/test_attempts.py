"""Attempts at a cell: nothing written is lost, and only attempts at the same run are counted."""

import hashlib
import json
import os
from contextlib import suppress

import pytest

from async_rollout.records.states import StateLog
from async_rollout.runners import attempts
from async_rollout.runners.attempts import begin_attempt
from async_rollout.runtime import checkpoint
from async_rollout.runtime.checkpoint import CheckpointError, RunState
from learning import run_config

ROWS = ("results.jsonl", "metrics.jsonl", "evals.jsonl", "stdout.log", "stderr.log", "resources.csv")


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
    assert (tmp_path / "resources.csv.attempt1").read_text() == "1"


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


def kept(out, version, offsets):
    """A checkpoint whose rows ended there."""
    place = checkpoint.stage(out, version)
    (place / checkpoint.TRAINING).write_bytes(b"weights")
    sums = {checkpoint.TRAINING: hashlib.sha256(b"weights").hexdigest()}
    checkpoint.finish(out, RunState(version, 10.0 * version, {}, offsets, None, None), sums)


def metrics(*versions) -> str:
    return "".join(json.dumps({"version": v, "step_sec": 1.0, "wait_sec": 0.5}) + "\n" for v in versions)


def begun(out, versions=3, keep=(1, 2)):
    """A run of some commits, the last torn in its writing, with checkpoints of some versions."""
    begin_attempt(out, run_config())
    for name in ROWS:
        (out / name).write_text("")
    for version in range(1, versions + 1):
        with (out / "metrics.jsonl").open("a") as file:
            file.write(metrics(version))
        with (out / "results.jsonl").open("a") as file:
            file.write(f"row {version}\n")
        if version in keep:
            kept(out, version, {name: (out / name).stat().st_size for name in attempts.ROWS})
    with (out / "results.jsonl").open("a") as file:
        file.write("torn ro")


def test_an_attempt_goes_on_from_the_newest_checkpoint(tmp_path):
    begun(tmp_path)
    attempt = begin_attempt(tmp_path, run_config())
    assert (attempt.number, attempt.place.name, attempt.state.version) == (2, "v2", 2)
    assert attempt.lost_sec == 1.5
    assert (tmp_path / "results.jsonl").read_text() == "row 1\nrow 2\n"
    assert (tmp_path / "results.jsonl.attempt1").read_text() == "row 3\ntorn ro"
    assert (tmp_path / "metrics.jsonl").read_text() == metrics(1, 2)
    assert (tmp_path / "metrics.jsonl.attempt1").read_text() == metrics(3)


def test_time_lost_adds_up_over_attempts(tmp_path):
    """Also when one makes no checkpoint of its own, and when it does nothing at all."""
    begun(tmp_path)
    begin_attempt(tmp_path, run_config())
    assert begin_attempt(tmp_path, run_config()).lost_sec == 1.5
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write(metrics(3, 4))
    attempt = begin_attempt(tmp_path, run_config())
    assert (attempt.number, attempt.lost_sec, attempt.state.version) == (4, 4.5, 2)


def test_without_a_checkpoint_all_is_lost(tmp_path):
    begun(tmp_path, keep=())
    attempt = begin_attempt(tmp_path, run_config())
    assert (attempt.number, attempt.place, attempt.lost_sec) == (2, None, 4.5)
    assert (tmp_path / "metrics.jsonl.attempt1").read_text() == metrics(1, 2, 3)


def test_a_damaged_checkpoint_is_named_and_the_older_one_used(tmp_path, capsys):
    begun(tmp_path)
    (tmp_path / "checkpoint" / "v2" / checkpoint.TRAINING).write_bytes(b"other")
    attempt = begin_attempt(tmp_path, run_config())
    assert (attempt.state.version, attempt.lost_sec) == (1, 3.0)
    assert "checkpoint/v2: training.pt is not what was written" in capsys.readouterr().err
    assert [p.name for p in checkpoint.checkpoints(tmp_path)] == ["v1"]


def test_a_checkpoint_whose_rows_are_gone_is_damaged(tmp_path):
    begun(tmp_path)
    (tmp_path / "results.jsonl").write_text("row 1\n")
    assert begin_attempt(tmp_path, run_config()).state.version == 1


def test_without_a_sound_checkpoint_it_refuses(tmp_path):
    """Beginning anew in silence would hide it; nothing is moved or removed."""
    begun(tmp_path)
    for version in (1, 2):
        (tmp_path / "checkpoint" / f"v{version}" / checkpoint.MANIFEST).unlink()
    before = sorted(p.name for p in tmp_path.iterdir())
    with pytest.raises(CheckpointError, match=r"(?s)v2: FileNotFound.*v1: FileNotFound.*begin the run anew"):
        begin_attempt(tmp_path, run_config())
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize("after", range(9))
def test_a_cut_that_was_cut_off_is_finished(tmp_path, monkeypatch, after):
    """Killed between any two changes to the directory: each row is in one place afterwards."""
    begun(tmp_path)
    left = [after]

    def counted(real):
        def change(*arguments, **names):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            return real(*arguments, **names)

        return change

    with monkeypatch.context() as patch:
        patch.setattr(type(tmp_path), "rename", counted(type(tmp_path).rename))
        patch.setattr(os, "truncate", counted(os.truncate))
        with suppress(KeyboardInterrupt):
            begin_attempt(tmp_path, run_config())
    attempt = begin_attempt(tmp_path, run_config())
    assert attempt.lost_sec == 1.5
    assert (tmp_path / "results.jsonl").read_text() == "row 1\nrow 2\n"
    assert (tmp_path / "results.jsonl.attempt1").read_text() == "row 3\ntorn ro"
    assert (tmp_path / "metrics.jsonl").read_text() == metrics(1, 2)
    assert (tmp_path / "metrics.jsonl.attempt1").read_text() == metrics(3)
