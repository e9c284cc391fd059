"""A growing file's rows come once each, whatever happens to the file."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.monitor import follow
from async_rollout.monitor.follow import Follower


class Heard:
    """What a follower handed over."""

    def __init__(self, path):
        self.rows: list[dict] = []
        self.restarts = 0
        self.follower = Follower(path, self.rows.append, self._restart)

    def _restart(self):
        self.rows.clear()
        self.restarts += 1

    def values(self):
        """What is in the rows after a look at the file."""
        self.follower.poll()
        return [row["n"] for row in self.rows]


def lines(*values, pad=0):
    return "".join(json.dumps({"n": v, "pad": "x" * pad}) + "\n" for v in values)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.jsonl"


@pytest.fixture
def heard(path):
    return Heard(path)


def test_a_torn_line_waits_for_its_end(path, heard):
    whole = lines(1, 2)
    path.write_text(whole[:-5])
    assert heard.values() == [1]
    assert heard.follower.damaged == 0
    path.write_text(whole)
    assert heard.values() == [1, 2]


def test_a_file_may_come_later_and_go_again(path, heard):
    assert heard.values() == []
    path.write_text(lines(1))
    assert heard.values() == [1]
    path.unlink()
    assert heard.values() == []
    assert heard.restarts == 1


def test_a_file_moved_aside_by_a_new_attempt_is_forgotten(path, heard):
    path.write_text(lines(1, 2, 3))
    heard.values()
    path.rename(path.with_name("rows.jsonl.attempt1"))
    path.write_text(lines(4, 5, 6, 7))
    assert heard.values() == [4, 5, 6, 7]


def test_a_file_cut_back_is_read_anew(path, heard):
    path.write_text(lines(1, 2, 3))
    heard.values()
    os.truncate(path, len(lines(1)))
    assert heard.values() == [1]


def test_a_file_cut_back_and_grown_past_the_place_reached_is_read_anew(path, heard):
    path.write_text(lines(1, 2, 3))
    heard.values()
    with path.open("r+") as file:  # the same file: only its content tells
        file.write(lines(1, 4, 5, 6, 7))
    assert heard.values() == [1, 4, 5, 6, 7]
    assert heard.restarts == 1


def test_damaged_lines_are_counted_and_passed_over(path, heard):
    path.write_text(lines(1) + "{oops\n[3]\n\n" + lines(2))
    assert heard.values() == [1, 2]
    assert heard.follower.damaged == 2


def test_only_what_is_new_is_read(path, heard, monkeypatch):
    path.write_text(lines(*range(2000), pad=100))
    heard.values()
    read = []

    class Counting:
        """A file that notes how much is read."""

        def __init__(self, file):
            self._file = file

        def __getattr__(self, name):
            return getattr(self._file, name)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._file.close()

        def read(self, size):
            data = self._file.read(size)
            read.append(len(data))
            return data

    opened = follow.open_regular
    monkeypatch.setattr(follow, "open_regular", lambda p: Counting(opened(p)))
    heard.values()
    assert read == []  # nothing changed: not even opened
    with path.open("a") as file:
        file.write(lines(2000, pad=100))
    assert heard.values()[-1] == 2000
    assert sum(read) < 500


def test_a_line_without_end_is_not_kept_in_memory(path, heard, monkeypatch):
    monkeypatch.setattr(follow, "_LONGEST", 1000)
    monkeypatch.setattr(follow, "_CHUNK", 256)
    path.write_text(lines(1) + "x" * 5000 + "\n" + lines(2))
    assert heard.values() == [1, 2]
    assert heard.follower.damaged >= 1


@given(st.lists(st.integers(), max_size=8), st.data())
def test_any_way_of_growing_gives_each_row_once(tmp_path_factory, values, data):
    path = tmp_path_factory.mktemp("grow") / "rows.jsonl"
    heard = Heard(path)
    rest = lines(*values).encode()
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        with path.open("ab") as file:
            file.write(rest[:size])
        rest = rest[size:]
        seen = heard.values()
        assert seen == values[: len(seen)]
    assert heard.values() == values
    assert heard.restarts == 0


def test_links_and_pipes_are_not_read(path, heard, tmp_path):
    secret = tmp_path / "secret.jsonl"
    secret.write_text(lines(7))
    path.symlink_to(secret)
    assert heard.values() == []
    path.unlink()
    os.mkfifo(path)  # opening it to read would wait for a writer
    assert heard.values() == []
