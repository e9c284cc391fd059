"""One run at a time in a cell's directory: two would write into each other's rows.

The lock is on the directory itself and dies with its process, however that ends.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from async_rollout.config.errors import ConfigError, Problem


@contextmanager
def occupied(out: Path) -> Iterator[None]:
    """Hold the directory, which is made where it is missing. ConfigError if another run holds it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what, fix = f"cannot be made a directory ({error.strerror})", "give another --out"
        raise ConfigError([Problem("--out", str(out), what, fix)]) from error
    descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = "another run is at work there"
            raise ConfigError(
                [Problem("--out", str(out), what, "wait for it, or give another --out")]
            ) from None
        yield
    finally:
        os.close(descriptor)
