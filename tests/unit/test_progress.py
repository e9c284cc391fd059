"""The progress line: when it is printed, and what it says."""

from dataclasses import fields

import pytest

from async_rollout.records.rows import MetricsRow
from async_rollout.runtime import progress as module
from async_rollout.runtime.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the test sets."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def progress(tmp_path, clock):
    progress = Progress("cell", 50, 5.0, tmp_path, 1)
    yield progress
    progress.close()


def row(version: int, **values) -> MetricsRow:
    blank = {f.name: 0 for f in fields(MetricsRow)}
    return MetricsRow(**blank | {"version": version, "seconds": float(version), "step_sec": 1.0} | values)


def printed(tmp_path) -> list[str]:
    return (tmp_path / "stdout.log").read_text().splitlines()


def test_the_first_the_last_and_one_every_heartbeat(progress, clock, tmp_path):
    for version in range(1, 51):
        clock[0] += 1
        progress.commit(row(version))
    versions = [int(line.split("version ")[1].split("/")[0]) for line in printed(tmp_path)]
    assert versions == [1, *range(6, 50, 5), 50]


def test_a_line_says_rate_speed_and_what_is_left(progress, clock, tmp_path, capsys):
    """Over the commits it has seen: 6 of 8 correct, 300 tokens in 3 s, 47 commits to go at 1 s each."""
    progress.commit(row(2, correct=2, incorrect=2, trained_tokens=100))
    clock[0] += 10
    progress.commit(row(3, correct=4, incorrect=0, trained_tokens=200, seconds=4.0, staleness_max=2))
    line = printed(tmp_path)[-1]
    assert line in capsys.readouterr().err
    assert "[cell] version 3/50  pass 0.75  100 tok/s" in line
    assert "(max 2)" in line
    assert "4 s, 63 s left" in line


def test_idle_speaks_only_when_nothing_happens(progress, clock, tmp_path):
    progress.say("begun")
    clock[0] += 4
    progress.idle("still here")
    progress.commit(row(2))
    clock[0] += 4
    progress.idle("still here")
    assert printed(tmp_path) == ["[cell] begun"]
    clock[0] += 1
    progress.idle("still here")
    assert printed(tmp_path)[-1] == "[cell] still here"
