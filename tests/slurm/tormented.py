"""A sweep on a real Slurm to which everything happens that happens on a cluster.

What was done and seen is on record; tests look at that, and at what the sweep left behind.
"""

import getpass
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import async_rollout
from runs import wait_until

ROOT = Path(__file__).parents[2]
START = Path(__file__).with_name("start.sh")
SOON = 900  # seconds for what takes a few on an idle machine
SYNC, LAGGED, AREAL = "sync-grpo-k0-dec1-s0", "lagged-grpo-k2-dec1-s0", "areal-grpo-k2-dec1-s0"
CELLS = (SYNC, LAGGED, AREAL)
EVERY = 5  # updates between two checkpoints
UPDATES = 80
EVAL_SIZE = 64
SWEEP = f"""\
experiment: tried
modes: [sync, lagged, areal]
staleness_k: [2]
decoupled: [1]
seeds: [0]
warm_start: {{steps: 60}}
data: {{train_size: 64, eval_size: {EVAL_SIZE}}}
batch: {{groups: 4, group_size: 4}}
train: {{updates: {UPDATES}, save_model: true}}
evaluation: {{every: 20}}
checkpoint: {{every: {EVERY}}}
stress: {{commit_sec: 0.2}}
cluster: {{partition: preemptible, constraint: fast, runtime_min: 60, mem_mb: 1000}}
"""
QUICK = ("--slurm-init-seconds-before-status-checks", "3", "--seconds-between-status-checks", "2")


@dataclass(frozen=True)
class Job:
    """A row of squeue."""

    id: str
    state: str
    node: str
    cell: str


class Checkout:
    """A copy of the workflow, whose cells run on Slurm."""

    def __init__(self, directory: Path):
        self.directory = directory
        for name in ("workflow", "config", "profiles", "envs"):
            shutil.copytree(ROOT / name, directory / name)
        shutil.copy(ROOT / "Snakefile", directory)
        (directory / "sweep.yaml").write_text(SWEEP)
        self.environment = os.environ | {
            "PYTHONPATH": str(Path(async_rollout.__file__).parents[1]),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        self._logs = 0

    def out(self, cell: str) -> Path:
        """A cell's directory."""
        return self.directory / "results/tried/sort/runs" / cell

    def drive(self, *arguments: str, profile: str = "slurm") -> tuple[subprocess.Popen, Path]:
        """Snakemake in a session of its own, and the file of what it says."""
        self._logs += 1
        log = self.directory / f"driver{self._logs}.log"
        command = [sys.executable, "-m", "snakemake", "--profile", f"profiles/{profile}", *arguments]
        with log.open("w") as file:
            process = subprocess.Popen(
                command, cwd=self.directory, env=self.environment, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
        return process, log

    def run(self, *command: str) -> str:
        """What a command prints that must succeed."""
        done = subprocess.run(
            command, cwd=self.directory, env=self.environment, capture_output=True, text=True, timeout=SOON
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def jobs(self) -> list[Job]:
        """Every job of this checkout that Slurm knows of, the oldest first."""
        rows = self.run("squeue", "-h", "--states=all", "--sort=i", "-o", "%i|%T|%N|%k|%Z").splitlines()
        found = []
        for row in rows:
            number, state, node, comment, place = row.split("|", 4)
            if place == str(self.directory):
                found.append(Job(number, state, node, comment.rpartition("_")[2]))
        return found

    def job(self, cell: str) -> Job | None:
        """The cell's running job."""
        running = [job for job in self.jobs() if job.cell == cell and job.state == "RUNNING"]
        return running[-1] if running else None

    def shown(self, job: str) -> dict[str, str]:
        """What `scontrol show job` says."""
        return dict(re.findall(r"(\S+?)=(\S*)", self.run("scontrol", "show", "job", job)))

    def attempt(self, cell: str) -> tuple[int, str, int]:
        """(its number, its state, its process): (0, "", 0) of a cell that never began."""
        path = self.out(cell) / "states.jsonl"
        rows = [json.loads(row) for row in path.read_text().splitlines()] if path.exists() else []
        return (rows[-1]["attempt"], rows[-1]["state"], rows[-1]["pid"]) if rows else (0, "", 0)

    def commits(self, cell: str) -> int:
        """Rows of its metrics."""
        path = self.out(cell) / "metrics.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def end_strays(self) -> None:
        """Kill what still runs in it: a node that went down, or a killed driver, may leave cells behind.

        Jobs are cancelled first, lest another begins; where the controller is down, none does.
        """
        subprocess.run(["scancel", "--user", getpass.getuser()])
        wait_until(lambda: not self._kill_processes(), SOON)

    def _kill_processes(self) -> bool:
        """Whether there were any."""
        inside = list(filter(self._is_inside, psutil.process_iter()))
        for process in inside:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return bool(inside)

    def _is_inside(self, process: psutil.Process) -> bool:
        try:
            return Path(process.cwd()).is_relative_to(self.directory)
        except psutil.Error:
            return False


@dataclass
class Record:
    """What was done to the sweep, and what was seen of it."""

    checkout: Checkout
    began: float = field(default_factory=time.monotonic)
    diary: list[tuple[float, str]] = field(default_factory=list)
    asked: dict[str, dict[str, str]] = field(default_factory=dict)  # by cell: what its first job asked for
    orphans: list[str] = field(default_factory=list)
    first_jobs: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)  # so far
    stricken: dict[str, str] = field(default_factory=dict)  # by fault: the cell
    logs: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Into the diary."""
        self.diary.append((time.monotonic() - self.began, text))
        with (self.checkout.directory / "diary.txt").open("a") as file:
            print(f"{self.diary[-1][0]:6.1f} s  {text}", file=file)

    def hold(self, *cells: str) -> None:
        """Stop each of these cells as soon as it has trained past a checkpoint in a new attempt.

        A busy machine may start one minutes after another, which would be done by then.
        """
        before = {cell: self.attempts.get(cell, 0) for cell in cells}
        starts: dict[str, int] = {}
        waiting = set(cells)

        def all_held() -> bool:
            for cell in sorted(waiting):
                attempt, state, process = self.checkout.attempt(cell)
                if attempt <= before[cell] or state != "running":
                    continue
                commits = self.checkout.commits(cell)
                if commits > starts.setdefault(cell, commits) + EVERY:
                    os.kill(process, signal.SIGSTOP)
                    self.attempts[cell] = attempt
                    self.note(f"{cell}: attempt {attempt} is at update {commits}")
                    waiting.remove(cell)
            return not waiting

        _wait(all_held, self.checkout)

    def release(self, *cells: str) -> None:
        """Let cells that are held go on."""
        for cell in cells:
            os.kill(self.checkout.attempt(cell)[2], signal.SIGCONT)


def _wait(condition: Callable[[], bool], checkout: Checkout) -> None:
    try:
        wait_until(condition, SOON)
    except AssertionError:
        log = max(checkout.directory.glob("driver*.log"), key=lambda path: path.stat().st_mtime)
        raise AssertionError(f"it takes too long; {log.name} ends:\n{log.read_text()[-3000:]}") from None


def torment(checkout: Checkout) -> Record:
    """Run the sweep to its end under every fault; the undisturbed cells lie in `undisturbed/`."""
    record = Record(checkout)
    driver, log = checkout.drive("--configfile", "sweep.yaml", *QUICK)
    try:
        _disturb(checkout, record)
        _kill_the_driver(checkout, record, driver)
        record.logs.append(log.read_text())
        driver, log = checkout.drive("--configfile", "sweep.yaml", *QUICK)
        _wait(lambda: driver.poll() is not None, checkout)
        record.logs.append(log.read_text())
        record.note(f"report complete; the second driver ends with {driver.returncode}")
        assert driver.returncode == 0, log.read_text()
    finally:
        if driver.poll() is None:
            driver.kill()
            driver.wait()
    return record


def _disturb(checkout: Checkout, record: Record) -> None:
    record.note("snakemake --profile profiles/slurm")
    record.hold(*CELLS)
    for cell in CELLS:
        job = checkout.job(cell)
        record.first_jobs[cell], record.asked[cell] = job.id, checkout.shown(job.id)

    controller = Path(os.environ["SLURM_TEST_DIR"], "run/slurmctld.pid")
    os.kill(int(controller.read_text()), signal.SIGTERM)
    wait_until(lambda: not controller.exists(), SOON)
    checkout.run("bash", str(START))
    record.note("slurmctld ended and started again; the jobs run on")

    nodes = {cell: checkout.job(cell).node for cell in CELLS}
    alone = next(cell for cell in CELLS if list(nodes.values()).count(nodes[cell]) == 1)
    first, second = (cell for cell in CELLS if cell != alone)
    record.release(first, alone)
    checkout.run("scancel", checkout.job(first).id)
    record.note(f"{first}: scancel")
    job = checkout.job(second).id
    checkout.run("scontrol", "update", f"jobid={job}", "EndTime=now+1")
    record.note(f"{second}: at its time limit")
    checkout.run(
        "sbatch", "-p", "main", "-w", nodes[alone], "--exclusive", "-o", "/dev/null", "--wrap", "sleep 1"
    )
    record.note(f"{alone}: preempted by a job of a higher partition")
    record.stricken = {"cancelled": first, "timeout": second, "preempted": alone, "node down": alone}

    record.hold(first, alone)
    # Slurm looks at limits every half minute; its SIGCONT lets go of the cell, which would be done by then.
    _wait(lambda: checkout.shown(job)["JobState"] != "RUNNING", checkout)
    record.hold(second)
    node = checkout.job(alone).node
    record.release(alone)
    checkout.run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    record.note(f"{alone}: its node {node} is set down")
    wait_until(lambda: checkout.job(alone) is None, SOON)
    checkout.run("scontrol", "update", f"nodename={node}", "state=resume")


def _kill_the_driver(checkout: Checkout, record: Record, driver: subprocess.Popen) -> None:
    driver.kill()
    driver.wait()
    record.orphans = [job.id for job in checkout.jobs() if job.state == "RUNNING"]
    record.release(record.stricken["cancelled"], record.stricken["timeout"])
    record.note(f"snakemake killed; {len(record.orphans)} jobs run on")
    checkout.run(sys.executable, "-m", "snakemake", "--configfile", "sweep.yaml", "--unlock")
    record.note("snakemake --unlock; snakemake --profile profiles/slurm")
