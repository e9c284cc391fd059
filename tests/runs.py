"""Runs in processes of their own, started by the command line as the workflow starts them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from async_rollout.runtime import checkpoint
from tiny_cells import cell_config

MARK = "ASYNC_ROLLOUT_TEST_RUN"  # environment variable that all processes of a run inherit
START_SEC = 120  # for a run to get going on a busy machine
EXIT_SEC = 15


@dataclass
class Run:
    """A run in its own session, with its output in a file."""

    process: subprocess.Popen
    out: Path
    log: Path
    mark: str
    shared: set[str]  # shared memory that was there before it

    def children(self) -> set[int]:
        """Process ids of the run's workers and judges, Python's resource tracker left out."""
        found = set()
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):  # it has ended, waited for or not
                if "spawn_main" in " ".join(child.cmdline()):
                    found.add(child.pid)
        return found

    def zombies(self) -> list[psutil.Process]:
        """Children that have ended and that the living controller has not waited for."""
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if child.status() == psutil.STATUS_ZOMBIE]

    def worker(self, role: str) -> psutil.Process:
        """By the newest pid that resources.csv has, which the controller itself wrote."""
        rows = [line.split(",") for line in (self.out / "resources.csv").read_text().splitlines()[1:]]
        return psutil.Process([int(row[2]) for row in rows if row[1] == role][-1])

    def reward_worker(self) -> psutil.Process:
        """The child that is in no role."""
        known = {self.worker(r).pid for r in ("rollout-0", "trainer-0", "parameter_service-0")}
        (pid,) = self.children() - known
        return psutil.Process(pid)

    def commits(self) -> int:
        path = self.out / "metrics.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def wait_for_commits(self, n: int) -> None:
        wait_until(lambda: self.commits() >= n or self.process.poll() is not None, START_SEC)
        assert self.process.poll() is None, self.text()
        wait_until(lambda: len((self.out / "resources.csv").read_text().splitlines()) > 4, 10)

    def end(self) -> tuple[int, float]:
        """(exit code, seconds until then)."""
        begun = time.monotonic()
        code = self.process.wait(timeout=EXIT_SEC)
        return code, time.monotonic() - begun

    def text(self) -> str:
        return self.log.read_text()

    def left(self) -> list[psutil.Process]:
        """Living processes, of any parent, that carry the run's mark.

        Those of a dead controller that nobody has waited for are no concern of the run's.
        """
        return [p for p in psutil.process_iter() if p.pid != self.process.pid and self._has_mark(p)]

    def _has_mark(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


def wait_until(condition, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


@contextmanager
def starting(data: Path, make_directory: Callable[[], Path]) -> Iterator[Callable[..., Run]]:
    """Gives a function that starts runs; whatever a failed test leaves is killed."""
    runs: list[Run] = []

    def start(updates: int = 1_000_000, out: Path | None = None, **blocks) -> Run:
        out = out or make_directory() / "cell"
        evaluation = {"every": 1_000_000}
        train = {"updates": updates} | blocks.pop("train", {})
        config = cell_config(train=train, evaluation=evaluation, **blocks)
        mark, log = f"{os.getpid()}-{id(runs)}-{len(runs)}", out.parent / f"log{len(runs)}"
        arguments = ["--resolved", config.model_dump_json(), "--out", str(out), "--data", str(data)]
        shared = shared_memory()
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "async_rollout.cli", "run", *arguments],
                stdout=file,
                stderr=file,
                env=os.environ | {MARK: mark},
                start_new_session=True,
            )
        runs.append(Run(process, out, log, mark, shared))
        return runs[-1]

    yield start
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait()


def shared_memory() -> set[str]:
    """Names in /dev/shm, where the system has one."""
    return {path.name for path in Path("/dev/shm").glob("*")}


def check_the_end(run: Run) -> None:
    """Nobody and no shared memory is left, nothing claims to be done, checkpoints are sound, and the rows
    so far can be read.
    """
    wait_until(lambda: not run.left(), 10)
    wait_until(lambda: not shared_memory() - run.shared, 10)
    assert not (run.out / "summary.json").exists()
    assert not [fault for place in checkpoint.checkpoints(run.out) if (fault := checkpoint.damage(place))]
    path = run.out / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    assert [row["version"] for row in rows] == list(range(1, len(rows) + 1))
