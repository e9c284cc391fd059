"""A real Slurm on this machine, for the time of a test file; without one, its tests are skipped aloud."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
ACCOUNTING = ("slurmdbd", "sacct", "sacctmgr", "mariadbd", "mariadb-install-db")
PLACE = Path(tempfile.gettempdir(), "async-rollout-slurm")  # where the scripts put it all, unless told
UNFIT = 3  # start.sh's exit code where this machine cannot have a Slurm of ours


@pytest.fixture(scope="module")
def slurm():
    """Two nodes with four CPUs and four GPUs each, partitions `main` and, below it, `preemptible`.

    It keeps no accounts, as on many small clusters, and squeue knows a finished job for an hour.
    """
    with _running_slurm(PROGRAMS):
        yield


@pytest.fixture(scope="module")
def slurm_with_accounting():
    """The same with slurmdbd: squeue forgets a job as soon as it has ended, and sacct keeps it."""
    with _running_slurm(PROGRAMS + ACCOUNTING, SLURM_TEST_ACCOUNTING="1"):
        yield


@contextmanager
def _running_slurm(programs: tuple[str, ...], **settings: str) -> Iterator[None]:
    """A Slurm with these settings of start.sh; the test is skipped where it needs what is not there."""
    if os.getuid() != 0:
        pytest.skip("a Slurm of our own needs root")
    if missing := [program for program in programs if shutil.which(program, path=_path()) is None]:
        pytest.skip(f"Slurm is not installed: no {', '.join(missing)} (Debian: see .ci/run)")
    if find_spec("snakemake_executor_plugin_slurm") is None:
        pytest.skip("no snakemake-executor-plugin-slurm: pip install -e '.[slurm]'")
    os.environ.setdefault("SLURM_TEST_DIR", str(PLACE))
    with PLACE.with_suffix(".lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        _stop()  # what a killed test run left may have other settings
        started = subprocess.run(
            ["bash", HERE / "start.sh"],
            capture_output=True,
            text=True,
            timeout=200,
            env=_environment(settings),
        )
        if started.returncode == UNFIT:
            pytest.skip(started.stderr.strip())
        try:
            assert started.returncode == 0, started.stderr
            yield
        finally:
            _stop()


def _stop() -> None:
    subprocess.run(["bash", HERE / "stop.sh"], check=True, timeout=100, env=_environment({}))


def _path() -> str:
    return os.pathsep.join([os.environ["PATH"], "/usr/sbin"])


def _environment(settings: dict[str, str]) -> dict[str, str]:
    return os.environ | {"PATH": _path()} | settings
