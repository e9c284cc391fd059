"""Strict JSON on disk: whole files appear at once or not at all; rows are appended.

A reader never sees half a file written by `write_json`; of a JSON-lines file it may see a
torn last line, which `read_jsonl` leaves out.
"""

import json
import lzma
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def refuse_constant(name: str) -> None:
    """For `parse_constant` of a JSON decoder: ValueError at NaN and infinity."""
    raise ValueError(f"{name} is not a number")


_COMPACT = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode
_ENCODE = json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode
_DECODE = json.JSONDecoder(parse_constant=refuse_constant).decode


def _fields(row: Any) -> dict[str, Any]:
    """What `asdict` gives for a row of plain data, without copying it."""
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def sync_directory(path: Path) -> None:
    """Make what was renamed or created in a directory survive a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """As `write_json`, a key a line: long lists take few bytes, and a diff names the key."""
    keys = (f" {json.dumps(name)}: {_COMPACT(value)}" for name, value in record.items())
    write_text(path, "{\n" + ",\n".join(keys) + "\n}\n")


def reserve(path: Path, size: int) -> None:
    """Take up `size` bytes of the disk: whoever removes the file can write as much when it is full."""
    path.write_bytes(bytes(size))


class JsonlWriter:
    """Appends dataclass rows; every `write` reaches the file before it returns.

    A torn last line, left by a writer that was killed, is cut off first, so that no row fuses with it.
    """

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _cut_torn_line(path)
        self._file = path.open("a", encoding="utf-8")

    def write(self, *rows: Any) -> None:
        """Append rows (dataclass instances of plain data), one line each."""
        self._file.write("".join(_ENCODE(_fields(row)) + "\n" for row in rows))
        self._file.flush()

    def offset(self) -> int:
        """Bytes in the file: what a checkpoint records."""
        return self._file.tell()

    def sync(self) -> int:
        """Flush to disk; returns the offset."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self.offset()

    def close(self) -> None:
        """Flush to disk and close, whether or not the disk has room."""
        try:
            self.sync()
        finally:
            self._file.close()


def _cut_torn_line(path: Path) -> None:
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) == b"\n":
            return
        file.seek(0)
        content = file.read()
        whole = content.rfind(b"\n") + 1
        print(f"{path}: the last line is torn, {len(content) - whole} bytes cut off", file=sys.stderr)
        file.truncate(whole)


def read_jsonl(path: Path) -> Iterator[dict]:
    """Rows of a JSON-lines file, or of one in `.xz`; a last line without its newline is torn and left out.

    Raises ValueError that names file and line if any other line is not an object of strict JSON.
    """
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                row = _DECODE(line.decode())
            except ValueError as error:
                raise ValueError(f"{path}:{number}: not JSON ({error})") from None
            if not isinstance(row, dict):
                raise ValueError(f"{path}:{number}: not a JSON object")
            yield row
