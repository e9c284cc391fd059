"""What surrounds every process's work: threads, and the memory and CPU time it takes."""

import csv
import gc
import os
import subprocess
import sys
import time

import pytest

from async_rollout.runtime.process import limit_threads, settle
from async_rollout.runtime.resources import ResourceLog


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def test_threads_are_limited_also_when_torch_was_there_first(monkeypatch):
    import torch

    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "7")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        limit_threads(1)
        assert torch.get_num_threads() == 1
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    finally:
        torch.set_num_threads(before)


def test_cpu_time_is_of_the_run_alone_and_summed_by_kind(tmp_path, sleeper):
    burn = time.process_time() + 0.1
    while time.process_time() < burn:
        pass  # before the log is opened: not counted
    log = ResourceLog(tmp_path / "r.csv", {"me-0": os.getpid(), "me-1": os.getpid(), "other-0": sleeper.pid})
    begun = time.process_time()
    while time.process_time() < begun + 0.2:
        pass
    seconds = log.cpu_seconds()
    log.close()
    assert seconds.keys() == {"me", "other"}
    assert 0.3 < seconds["me"] < 0.6  # the same process under two roles
    assert seconds["other"] < 0.2


def test_the_judges_count_with_what_they_run_and_whoever_replaces_them(tmp_path):
    """One that burns in a child of its own; then another one, which was not there at the start."""
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    body = f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {burn!r}]); time.sleep(60)"
    judges = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])]
    log = ResourceLog(
        tmp_path / "r.csv", {"me-0": os.getpid()}, lambda: [j.pid for j in judges], every_sec=0.05
    )
    try:
        assert log.cpu_seconds()["reward"] < 0.1
        judges.append(subprocess.Popen([sys.executable, "-c", body]))
        deadline = time.monotonic() + 20
        while log.cpu_seconds()["reward"] < 0.3:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        log.close()
        for judge in judges:
            judge.kill()
            judge.wait()
    roles = {line.split(",")[1] for line in (tmp_path / "r.csv").read_text().splitlines()[1:]}
    assert roles == {"me-0", "reward-0", "reward-1"}


def test_every_process_is_sampled_from_the_start(tmp_path, sleeper):
    """Also in a run of less than a second; one that ended is left out."""
    log = ResourceLog(tmp_path / "r.csv", {"me-0": os.getpid(), "gone-0": sleeper.pid}, every_sec=0.05)
    time.sleep(0.1)
    sleeper.kill()
    sleeper.wait()
    time.sleep(0.2)
    log.close()
    with (tmp_path / "r.csv").open() as file:
        rows = list(csv.DictReader(file))
    ours = [r for r in rows if r["role"] == "me-0"]
    assert len(ours) >= 3
    assert all(int(r["pid"]) == os.getpid() and float(r["rss_mb"]) > 5 for r in ours)
    assert {r["role"] for r in rows[:2]} == {"me-0", "gone-0"}
    assert rows[-1]["role"] == "me-0"


def test_collections_pass_by_what_set_up_has_made():
    made = [[] for _ in range(1000)]  # containers, which collections walk
    try:
        settle()
        assert gc.get_freeze_count() > len(made)
        assert not any(made is each for each in gc.get_objects())
    finally:
        gc.unfreeze()
