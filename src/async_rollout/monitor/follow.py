"""The rows of a growing JSON-lines file, each handed over once.

A torn last line waits until it is whole. A file that was replaced, or cut back and written on
(a resumed run does that), is noticed and handed over from its start, after `on_restart`.
"""

from collections.abc import Callable
from pathlib import Path

from async_rollout.monitor.files import look_up, open_regular, parse_row

_CHUNK = 1 << 18
_LONGEST = 8 << 20  # bytes of a line; more than any run writes
_MARK = 64


class Follower:
    """Reads what is new since the last `poll`."""

    __slots__ = ("_inode", "_mark", "_offset", "_on_restart", "_on_row", "_path", "_seen", "damaged", "mtime")

    def __init__(self, path: Path, on_row: Callable[[dict], None], on_restart: Callable[[], None]):
        self._path = path
        self._on_row = on_row
        self._on_restart = on_restart
        self._inode = 0
        self._offset = 0  # of the first byte that was not handed over
        self._mark = b""  # the bytes before it: if they change, the file is another one
        self._seen = (0, 0)  # size and time of change at the last poll
        self.damaged = 0  # complete lines that are no JSON object
        self.mtime = 0.0

    def poll(self) -> bool:
        """Hand over new rows; True if anything was read or forgotten."""
        found = look_up(self._path)
        if found is None:
            return self._restart() if self._offset else False
        if (found.st_size, found.st_mtime_ns) == self._seen and found.st_ino == self._inode:
            return False
        self._seen = (found.st_size, found.st_mtime_ns)
        self.mtime = found.st_mtime
        if self._offset and found.st_ino != self._inode:
            self._restart()
        self._inode = found.st_ino
        self._read()
        return True

    def _read(self) -> None:
        file = open_regular(self._path)
        if file is None:
            return
        with file:
            file.seek(self._offset - len(self._mark))
            if file.read(len(self._mark)) != self._mark:
                self._restart()
                file.seek(0)
            rest = b""
            while chunk := file.read(_CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._hand_over(line)
                if len(rest) > _LONGEST:
                    self._hand_over(rest)
                    rest = b""
            self._offset = file.tell() - len(rest)
            start = max(0, self._offset - _MARK)
            file.seek(start)
            self._mark = file.read(self._offset - start)

    def _hand_over(self, line: bytes) -> None:
        row = parse_row(line)
        if row is not None:
            self._on_row(row)
        elif line.strip():
            self.damaged += 1

    def _restart(self) -> bool:
        self._offset, self._mark, self.damaged = 0, b"", 0
        self._on_restart()
        return True
