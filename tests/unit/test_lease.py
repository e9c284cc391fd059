"""What one run holds no other gets, until the kernel sees the holder end."""

import os
import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path

import pytest

from async_rollout.runtime import lease
from async_rollout.runtime.lease import lease_directory, leased
from leaseholder import take_turns

HOLDER = Path(__file__).parents[1] / "leaseholder.py"


@pytest.fixture(autouse=True)
def own_place(tmp_path, monkeypatch):
    monkeypatch.setattr(lease.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


@pytest.fixture
def hold(tmp_path):
    """Starts processes that take `n` of `names`; those that are left are killed."""
    holders = []

    def start(names: str, n: int, holder: str = "somebody") -> subprocess.Popen:
        holders.append(
            subprocess.Popen(
                [sys.executable, HOLDER, names, str(n), holder],
                env=os.environ | {"TMPDIR": str(tmp_path)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return holders[-1]

    yield start
    for process in holders:
        process.kill()
        process.communicate()


def got(process: subprocess.Popen) -> list[str]:
    """What a holder has, once it has it."""
    return process.stdout.readline().strip().split(",")


def test_two_holders_never_share(hold):
    first, second = hold("0,1,2,3", 2), hold("0,1,2,3", 2)
    assert sorted(got(first) + got(second)) == ["0", "1", "2", "3"]


def test_a_lease_ends_with_its_holder_however_that_ends(hold):
    first = hold("0,1", 2)
    assert got(first) == ["0", "1"]
    first.kill()
    with leased("GPU", ["0", "1"], 2, "next") as taken:
        assert taken == ["0", "1"]


def test_who_finds_too_few_waits_with_none_and_says_for_whom(hold, capsys, monkeypatch):
    monkeypatch.setattr(lease, "_NOTICE_SEC", (0.0, 60.0))
    first = hold("0,1", 1, "sweep/sort/cell")
    assert got(first) == ["0"]
    second = hold("0,1", 2)
    assert "waits for 2 of 2 GPUs; 0: sweep/sort/cell (process " in second.stderr.readline()
    with leased("other", ["0"], 1, "me") as taken:  # another kind is another matter
        assert taken == ["0"]
    first.communicate()
    assert got(second) == ["0", "1"]


def test_one_who_needs_many_is_not_passed_by(hold):
    """A third one, for whom there would be enough, waits behind the second, for whom there is not."""
    first = hold("0,1", 1)
    assert got(first) == ["0"]
    second = hold("0,1", 2)
    second.stderr.readline()  # it waits
    third = hold("0,1", 1)
    third.stderr.readline()
    first.communicate()
    assert got(second) == ["0", "1"]
    second.communicate()
    assert got(third) == ["0"]


def test_nobody_waits_behind_one_who_waits_for_other_things(hold):
    """Two jobs of one machine, each bound to cores of its own."""
    first = hold("0,1", 1)
    assert got(first) == ["0"]
    second = hold("0,1", 2)
    second.stderr.readline()  # it waits
    with leased("GPU", ["2", "3"], 1, "elsewhere") as taken:
        assert taken == ["2"]
        third = hold("1,2", 1)  # it could take what the second waits for
        third.stderr.readline()
    first.communicate()
    assert got(second) == ["0", "1"]
    assert got(third) == ["2"]


def test_many_at_once_never_share(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "marks").mkdir()
    with get_context("spawn").Pool(4) as pool:
        shared = pool.starmap(take_turns, [(tmp_path / "marks", 1 + i % 2) for i in range(4)], chunksize=1)
    assert shared == [0, 0, 0, 0]


def test_more_than_there_are_is_refused():
    with (
        pytest.raises(ValueError, match="3 GPUs are wanted, and there are 2"),
        leased("GPU", ["0", "1"], 3, ""),
    ):
        pass


def test_a_slurm_job_has_gpus_of_its_own_and_cores_of_the_machine(monkeypatch):
    """GPUs may be numbered from 0 in each job; where no job is bound to cores, all have the same ones."""
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    with leased("GPU", ["0", "1"], 1, "17"), leased("core", ["0", "1"], 1, "17") as core:
        monkeypatch.setenv("SLURM_JOB_ID", "18")
        with leased("GPU", ["0", "1"], 1, "18") as gpu, leased("core", ["0", "1"], 1, "18") as other:
            assert (gpu, core, other) == (["0"], ["0"], ["1"])
        monkeypatch.delenv("SLURM_JOB_ID")
        with leased("core", ["0", "1"], 1, "no job") as other:
            assert other == ["1"]


def test_a_place_that_somebody_else_made_is_not_trusted(tmp_path):
    (tmp_path / f"async-rollout-leases-{os.getuid()}").symlink_to("/")
    with pytest.raises(PermissionError, match="TMPDIR"):
        lease_directory("GPU")


def test_children_do_not_keep_a_lease():
    """A process that outlives its parent would, had it inherited the lock."""
    with leased("GPU", ["0"], 1, "parent"):
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
    try:
        began = time.monotonic()
        with leased("GPU", ["0"], 1, "next") as taken:
            assert taken == ["0"]
            assert time.monotonic() - began < 10, "it waited for the child"
    finally:
        child.kill()
        child.wait()
