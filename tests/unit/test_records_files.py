"""Files appear whole or not at all; a torn last line of a JSONL file is left out."""

import json
import os
import random
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.records.files import JsonlWriter, read_jsonl, write_json, write_text
from async_rollout.records.rows import EvalRow

WRITER = """
import itertools, sys
from pathlib import Path
from async_rollout.records.files import write_json
for n in itertools.count(1):
    write_json(Path(sys.argv[1]), {"n": n, "rows": [n] * 20000})
"""


@dataclass(frozen=True)
class Row:
    text: str
    number: float


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    write_json(path, {"n": 0, "rows": [0] * 20000})
    pause = random.Random(0)
    last = 0
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)])
        until = time.monotonic() + 20
        while json.loads(path.read_text())["n"] == last and time.monotonic() < until:
            time.sleep(0.005)  # the writer starts
        time.sleep(pause.uniform(0, 0.03))
        process.kill()
        process.wait()
        found = json.loads(path.read_text())
        assert found["rows"] == [found["n"]] * 20000
        last = found["n"]
    assert last > 0


def test_a_failed_write_leaves_what_was_there_and_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": 1}
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert json.loads(path.read_text()) == {"a": 1}
    assert os.listdir(tmp_path) == ["a.json"]


@given(st.lists(st.tuples(st.text(), st.floats(allow_nan=False, allow_infinity=False))), st.data())
def test_a_jsonl_file_cut_anywhere_gives_its_whole_rows(tmp_path_factory, rows, data) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    writer = JsonlWriter(path)
    ends = []
    for row in rows:
        writer.write(Row(*row))
        ends.append(writer.offset())
    writer.close()
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    expected = [{"text": t, "number": n} for (t, n), end in zip(rows, ends, strict=True) if end <= cut]
    assert list(read_jsonl(path)) == expected


@pytest.mark.parametrize("line", [b"{", b"[1]", b"\xff", b""])
def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n' + line + b'\n{"a": 2}\n')
    with pytest.raises(ValueError, match=r"rows\.jsonl:2: not"):
        list(read_jsonl(path))


def test_a_row_is_what_asdict_makes_of_it(tmp_path):
    """Written without its copy: lists and dicts of plain data, in the order of the fields."""
    row = EvalRow(1, 2, 0.5, 0.25, 0.75, 8)
    with closing(JsonlWriter(tmp_path / "rows.jsonl")) as writer:
        writer.write(row)
    (line,) = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert line == json.dumps(asdict(row))
