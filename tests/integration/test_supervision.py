"""Runs that are killed or stopped: they say who died, quickly, and leave no process and no summary.

Each run is a process of its own, started by the command line as the workflow starts it.
"""

import json
import os
import signal
import statistics
import time

import psutil
import pytest

from async_rollout.runtime import checkpoint
from async_rollout.tasks.prepare import prepare
from runs import EXIT_SEC, START_SEC, check_the_end, starting, wait_until
from tiny_cells import cell_config


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    prepare("sort", cell_config().data, path)
    return path


@pytest.fixture(scope="module")
def start(data, tmp_path_factory):
    with starting(data, lambda: tmp_path_factory.mktemp("run")) as start:
        yield start


@pytest.fixture(scope="module")
def under_way(start):
    """Runs for the tests below, begun together: most of their time is imports that wait for each other."""
    ends = ("rollout-0", "trainer-0", "parameter_service-0", "SIGINT", "SIGTERM", "SIGKILL")
    return {end: start(supervision={"restarts": 0}) for end in ends} | {"replaced": start()}


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


def test_who_is_replaced_leaves_no_zombie(under_way):
    """A rollout worker and a judge: the controller waits for its dead while it goes on."""
    run = under_way["replaced"]
    run.wait_for_commits(3)
    team, dead = run.children(), {run.worker("rollout-0"), run.reward_worker()}
    for process in dead:
        process.kill()
    wait_until(lambda: len(run.children() - team) == len(dead), START_SEC)
    run.wait_for_commits(run.commits() + 5)
    assert "rollout-0 (pid" in run.text()
    assert run.zombies() == []
    run.process.terminate()
    assert run.end()[0] == 143
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


@pytest.fixture(scope="module")
def hanging(start):
    """As `under_way`: two runs of which a process is going to hang, one that is stopped then."""
    limits = {"step_timeout_sec": 4.0, "shutdown_sec": 2.0}
    return {
        role: start(supervision=limits, checkpoint={"every": 2})
        for role in ("trainer-0", "parameter_service-0")
    } | {
        "SIGTERM": start(
            supervision={"shutdown_sec": 1.0},
            checkpoint={"every": 2, "grace_sec": 1.5},
            rollout={"weights": "disk"},
        ),
    }


@pytest.mark.parametrize("role", ["trainer-0", "parameter_service-0"])
def test_a_process_that_hangs_stops_the_run_and_is_named(hanging, role):
    """It lives, its channel is open, and it says nothing: neither word nor SIGTERM would end it."""
    run = hanging[role]
    run.wait_for_commits(3)
    pid = run.worker(role).pid
    os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    assert run.process.wait(timeout=START_SEC) == 1
    assert time.monotonic() > begun + 3.9
    (said,) = [
        line for line in run.text().splitlines() if "step_timeout_sec" in line and "WorkerHung" in line
    ]
    assert f"{role} (pid {pid}) hangs" in said
    assert not [other for other in hanging if other != role and f"{other} (pid" in said]
    assert json.loads((run.out / "states.jsonl").read_text().splitlines()[-1])["reason"] == "hung"
    check_the_end(run)
    assert checkpoint.checkpoints(run.out)


def test_terminated_while_its_trainer_hangs(hanging):
    """The step does not end in the grace time: it leaves with its last checkpoint."""
    run = hanging["SIGTERM"]
    run.wait_for_commits(3)
    os.kill(run.worker("trainer-0").pid, signal.SIGSTOP)
    time.sleep(0.2)
    run.process.terminate()
    code, seconds = run.end()
    assert code == 143
    assert seconds > 1.4, "the step might have ended in its grace time"
    assert not (run.out / "weights").exists()
    check_the_end(run)
    assert checkpoint.checkpoints(run.out)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (signal.SIGKILL, -signal.SIGKILL),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.long),
    ],
)
def test_a_run_that_is_ended_in_mid_checkpoint_leaves_a_sound_one(start, number, expected):
    """Half a checkpoint is none; nobody is left."""
    run = start(checkpoint={"every": 1})
    run.wait_for_commits(3)
    directory = run.out / "checkpoint"
    wait_until(lambda: [p for p in directory.iterdir() if p.name.startswith(".v")], START_SEC)
    run.process.send_signal(number)
    code, _ = run.end()
    assert code == expected
    check_the_end(run)
    assert checkpoint.checkpoints(run.out)
    if number == signal.SIGTERM:
        assert checkpoint.checkpoints(run.out)[0].name == f"v{run.commits()}"
    if number != signal.SIGKILL:
        assert not list(directory.glob(".v*"))


def test_who_is_not_ready_in_time_is_named(start):
    run = start(supervision={"setup_timeout_sec": 0.2, "setup_poll_sec": 0.1})
    code = run.process.wait(timeout=START_SEC)
    assert code == 1
    assert "SetupTimeout: not ready after" in run.text()
    assert "trainer-0" in run.text()
    check_the_end(run)


def test_descriptors_stay_flat(start):
    """Over 500 publications, in every process; a judge is killed and replaced meanwhile."""
    run = start(updates=600)
    run.wait_for_commits(20)
    run.reward_worker().kill()
    roles = ("trainer-0", "rollout-0", "parameter_service-0")
    watched = [psutil.Process(run.process.pid), *map(run.worker, roles)]
    descriptors = [[p.num_fds() for p in watched]]
    while run.commits() < 500:
        assert run.process.poll() is None, run.text()
        descriptors.append([p.num_fds() for p in watched])
        time.sleep(0.1)
    fifth = max(1, len(descriptors) // 5)
    for counts in zip(*descriptors, strict=True):  # medians: a judge is being replaced, a checkpoint is open
        first, last = statistics.median(counts[:fifth]), statistics.median(counts[-fifth:])
        assert abs(last - first) <= 2, f"{first:g} at first, {last:g} in the end"
    assert run.process.wait(timeout=START_SEC) == 0, run.text()
    wait_until(lambda: not run.left(), 10)
    assert json.loads((run.out / "summary.json").read_text())["updates"] == 600
