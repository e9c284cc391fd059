"""Strict JSON on disk: whole files appear at once or not at all; rows are appended.

A reader never sees half a file written by `write_json`; of a JSON-lines file it may see a
torn last line, which `read_jsonl` leaves out.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any


def write_text(path: Path, text: str) -> None:
    """Write `text` so that `path` holds either all of it or what it held before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any, *, indent: int | None = 1) -> None:
    """`write_text` of strict JSON: NaN and infinity raise ValueError."""
    write_text(path, json.dumps(value, allow_nan=False, indent=indent, ensure_ascii=False) + "\n")


class JsonlWriter:
    """Appends dataclass rows; every `write` reaches the file before it returns."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")

    def write(self, *rows: Any) -> None:
        """Append rows (dataclass instances), one line each."""
        lines = (json.dumps(asdict(row), allow_nan=False, ensure_ascii=False) for row in rows)
        self._file.write("".join(line + "\n" for line in lines))
        self._file.flush()

    def offset(self) -> int:
        """Bytes in the file: what a checkpoint records."""
        return self._file.tell()

    def close(self) -> None:
        """Flush to disk and close."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def read_jsonl(path: Path) -> Iterator[dict]:
    """Rows of a JSON-lines file; a last line without its newline is torn and left out.

    Raises ValueError that names file and line if any other line is not a JSON object.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{path}:{number}: not JSON ({error})") from None
            if not isinstance(row, dict):
                raise ValueError(f"{path}:{number}: not a JSON object")
            yield row
