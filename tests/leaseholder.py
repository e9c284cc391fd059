"""Processes that hold leases."""

import sys
import time
from pathlib import Path

from async_rollout.runtime.lease import leased


def take_turns(marks: Path, n: int, turns: int = 10) -> int:
    """Hold `n` of three things again and again; how many of them another held at the same time."""
    shared = 0
    for _ in range(turns):
        with leased("GPU", ["0", "1", "2"], n, "one of many") as taken:
            shared += sum((marks / name).exists() for name in taken)
            for name in taken:
                (marks / name).touch()
            time.sleep(0.005)
            for name in taken:
                (marks / name).unlink(missing_ok=True)
    return shared


if __name__ == "__main__":  # NAMES N HOLDER: say what it got in a line, and let go at the end of its input
    with leased("GPU", sys.argv[1].split(","), int(sys.argv[2]), sys.argv[3]) as taken:
        print(",".join(taken), flush=True)
        sys.stdin.read()
