"""A real Slurm on this machine, for the time of these tests; without one they are skipped, and say why."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
PLACE = Path(tempfile.gettempdir(), "async-rollout-slurm")  # where the scripts put it all, unless told
UNFIT = 3  # start.sh's exit code where this machine cannot have a Slurm of ours


@pytest.fixture(scope="session")
def slurm():
    """Two nodes with four CPUs and four GPUs each, partitions `main` and, below it, `preemptible`."""
    if os.getuid() != 0:
        pytest.skip("a Slurm of our own needs root")
    if missing := [program for program in PROGRAMS if shutil.which(program, path=_path()) is None]:
        pytest.skip(f"Slurm is not installed: no {', '.join(missing)} (Debian: see .ci/run)")
    if find_spec("snakemake_executor_plugin_slurm") is None:
        pytest.skip("no snakemake-executor-plugin-slurm: pip install -e '.[slurm]'")
    os.environ.setdefault("SLURM_TEST_DIR", str(PLACE))
    with PLACE.with_suffix(".lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        started = subprocess.run(
            ["bash", HERE / "start.sh"], capture_output=True, text=True, timeout=100, env=_environment()
        )
        if started.returncode == UNFIT:
            pytest.skip(started.stderr.strip())
        assert started.returncode == 0, started.stderr
        yield
        subprocess.run(["bash", HERE / "stop.sh"], check=True, timeout=100, env=_environment())


def _path() -> str:
    return os.pathsep.join([os.environ["PATH"], "/usr/sbin"])


def _environment() -> dict[str, str]:
    return os.environ | {"PATH": _path()}
