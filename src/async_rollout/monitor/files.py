"""Reading below the results directory: regular files only, never through a link.

Whoever can write results must not make the monitor read anything else: a link to a key is
not followed, a pipe does not hang. What cannot be read now counts as not there: the next
look tries again, as a file of a network file system may be replaced at any moment.
"""

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def look_up(path: Path) -> os.stat_result | None:
    """What is at `path` if it is a regular file."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def open_regular(path: Path) -> BinaryIO | None:
    """`path` for reading if it is a regular file."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "rb")


def read_start(path: Path, size: int) -> bytes:
    """The first `size` bytes; empty if there is no such file."""
    file = open_regular(path)
    if file is None:
        return b""
    with file:
        return file.read(size)


def read_tail(path: Path, size: int) -> bytes:
    """The last `size` bytes, from the start of a line on if the file is longer than that."""
    file = open_regular(path)
    if file is None:
        return b""
    with file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - size))
        data = file.read(size)
    return data if length <= size else data.partition(b"\n")[2]


def read_json(path: Path, limit: int = 8 << 20) -> Any:
    """A JSON file's value; None if there is none, or it is damaged or longer than `limit` bytes."""
    data = read_start(path, limit + 1)
    if not data or len(data) > limit:
        return None
    try:
        return finite(json.loads(data))
    except (ValueError, RecursionError):
        return None


def json_rows(data: bytes) -> list[dict]:
    """The rows among complete lines; what is torn or damaged is left out."""
    lines = data.split(b"\n")[:-1]
    return [finite(row) for line in lines if (row := parse_row(line)) is not None]


def parse_row(line: bytes) -> dict | None:
    """One JSON object, or None."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def finite(value: Any) -> Any:
    """The value with null for every number that strict JSON has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(inner) for name, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list) else value


def subdirectories(path: Path) -> list[str]:
    """Names of the directories in `path`, sorted; links and hidden ones left out."""
    try:
        with os.scandir(path) as entries:
            return sorted(
                e.name for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")
            )
    except OSError:
        return []


def printable(name: str) -> str:
    """A file's name as valid Unicode: bytes that are none are shown escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def last_change(directory: Path, *names: str) -> float:
    """When one of these files last changed, in seconds since 1970; 0 if there is none."""
    found = (look_up(directory / name) for name in names)
    return max((each.st_mtime for each in found if each), default=0.0)
