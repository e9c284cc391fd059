"""Runs that are killed or stopped: they say who died, quickly, and leave no process and no summary.

Each run is a process of its own, started by the command line as the workflow starts it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from async_rollout.tasks.prepare import prepare
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

    def children(self) -> set[int]:
        """Process ids of the run's workers and judges, Python's resource tracker left out."""
        children = psutil.Process(self.process.pid).children()
        return {child.pid for child in children if "spawn_main" in " ".join(child.cmdline())}

    def worker(self, role: str) -> psutil.Process:
        """By the pid that resources.csv has, which the controller itself wrote."""
        lines = (self.out / "resources.csv").read_text().splitlines()[1:]
        return psutil.Process(next(int(line.split(",")[2]) for line in lines if line.split(",")[1] == role))

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
        """Living processes, of any parent, that carry the run's mark."""
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


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    prepare("sort", cell_config().data, path)
    return path


@pytest.fixture(scope="module")
def start(data, tmp_path_factory):
    """Starts runs; whatever a failed test leaves is killed."""
    runs: list[Run] = []

    def start(updates: int = 1_000_000, out: Path | None = None, **blocks) -> Run:
        out = out or tmp_path_factory.mktemp("run") / "cell"
        evaluation = {"every": 1_000_000}
        config = cell_config(train={"updates": updates}, evaluation=evaluation, **blocks)
        mark, log = f"{os.getpid()}-{len(runs)}", out.parent / f"log{len(runs)}"
        arguments = ["--resolved", config.model_dump_json(), "--out", str(out), "--data", str(data)]
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "async_rollout.cli", "run", *arguments],
                stdout=file,
                stderr=file,
                env=os.environ | {MARK: mark},
                start_new_session=True,
            )
        runs.append(Run(process, out, log, mark))
        return runs[-1]

    yield start
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait()


@pytest.fixture(scope="module")
def under_way(start):
    """Runs for the tests below, begun together: most of their time is imports that wait for each other."""
    ends = ("rollout-0", "trainer-0", "parameter_service-0", "SIGINT", "SIGTERM", "SIGKILL")
    return {end: start() for end in ends}


def check_the_end(run: Run) -> None:
    """Nobody is left, nothing claims to be done, and the rows so far can be read."""
    wait_until(lambda: not run.left(), 10)
    assert not (run.out / "summary.json").exists()
    path = run.out / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    assert [row["version"] for row in rows] == list(range(1, len(rows) + 1))


@pytest.mark.parametrize("role", ["rollout-0", "trainer-0", "parameter_service-0"])
def test_a_killed_worker_stops_the_run_and_is_named(under_way, role):
    run = under_way[role]
    run.wait_for_commits(3)
    assert len(run.left()) >= 4
    pid = run.worker(role).pid
    os.kill(pid, signal.SIGKILL)
    code, seconds = run.end()
    assert code == 1
    assert seconds < EXIT_SEC
    assert f"{role} (pid {pid}) killed by signal 9" in run.text()
    others = {"rollout-0", "trainer-0", "parameter_service-0"} - {role}
    assert not [other for other in others if f"{other} (pid" in run.text().split(role, 1)[0]]
    assert f"{role} (pid {pid})" in (run.out / "stderr.log").read_text()
    assert json.loads((run.out / "states.jsonl").read_text().splitlines()[-1])["reason"] == "killed"
    check_the_end(run)


def test_ctrl_c_in_mid_run(under_way):
    """Pressed twice, to the whole group, as a terminal does it."""
    run = under_way["SIGINT"]
    run.wait_for_commits(3)
    os.killpg(run.process.pid, signal.SIGINT)
    time.sleep(0.05)
    os.killpg(run.process.pid, signal.SIGINT)
    code, _ = run.end()
    assert code == 130
    check_the_end(run)


def test_terminated_in_mid_run(under_way):
    run = under_way["SIGTERM"]
    run.wait_for_commits(3)
    run.process.terminate()
    code, _ = run.end()
    assert code == 143
    assert json.loads((run.out / "states.jsonl").read_text().splitlines()[-1])["reason"] == "stopped"
    check_the_end(run)


def test_a_killed_controller_takes_everyone_with_it(under_way):
    run = under_way["SIGKILL"]
    run.wait_for_commits(3)
    run.process.kill()
    run.process.wait()
    check_the_end(run)


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_while_it_starts(start, number, expected):
    """Before the workers have built their parts."""
    run = start()
    wait_until(lambda: len(run.children()) >= 4, START_SEC)
    run.process.send_signal(number)
    code, seconds = run.end()
    assert code == expected
    assert seconds < 5, "workers that still build are not waited for"
    assert run.commits() == 0
    check_the_end(run)


def test_a_killed_controller_takes_those_that_still_start_with_it(start):
    run = start()
    wait_until(lambda: len(run.children()) >= 4, START_SEC)
    run.process.kill()
    run.process.wait()
    check_the_end(run)


def test_who_is_not_ready_in_time_is_named(start):
    run = start(supervision={"setup_timeout_sec": 0.2, "setup_poll_sec": 0.1})
    code = run.process.wait(timeout=START_SEC)
    assert code == 1
    assert "SetupTimeout: not ready after" in run.text()
    assert "trainer-0" in run.text()
    check_the_end(run)


def test_a_rerun_goes_on_after_a_dead_judge_and_ends_well(start, under_way):
    """In the directory of a run that was killed: its rows are kept apart; the judge is replaced.

    Descriptors stay flat over more than 500 publications, in every process.
    """
    before = under_way["rollout-0"]
    before.process.wait(timeout=START_SEC)
    old = (before.out / "results.jsonl").read_bytes()
    run = start(updates=600, out=before.out)
    run.wait_for_commits(20)
    run.reward_worker().kill()
    watched = [psutil.Process(run.process.pid), run.worker("trainer-0"), run.worker("rollout-0")]
    descriptors = [[p.num_fds() for p in watched]]
    while run.commits() < 500:
        assert run.process.poll() is None, run.text()
        descriptors.append([p.num_fds() for p in watched])
        time.sleep(0.1)
    for counts in zip(*descriptors, strict=True):
        assert max(counts) - min(counts) <= 2, "more than a judge being replaced"
    assert run.process.wait(timeout=START_SEC) == 0, run.text()
    wait_until(lambda: not run.left(), 10)
    summary = json.loads((run.out / "summary.json").read_text())
    assert (summary["attempts"], summary["updates"]) == (2, 600)
    assert (run.out / "results.jsonl.attempt1").read_bytes() == old
    states = [json.loads(line)["state"] for line in (run.out / "states.jsonl").read_text().splitlines()]
    assert states[-1] == "done"
    assert "failed" in states
