"""profiles/slurm/driver.sbatch without Slurm: what it starts outlives what Slurm refuses."""

import os
import signal
import subprocess
from pathlib import Path

from runs import wait_until

DRIVER = Path(__file__).parents[2] / "profiles/slurm/driver.sbatch"
SNAKEMAKE = """#!/usr/bin/env bash
touch started
until [ -e refused ]; do sleep 0.02; done
sleep 0.3
touch finished
"""
SCONTROL = """#!/usr/bin/env bash
touch refused
echo "Requested operation is presently disabled" >&2
exit 1
"""


def test_a_refused_requeue_does_not_end_the_sweep(tmp_path):
    """Cells have the time that is left, and end with their state kept."""
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    for name, text in (("snakemake", SNAKEMAKE), ("scontrol", SCONTROL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    job = {"SLURM_JOB_ID": "17", "SLURM_CPUS_PER_TASK": "1", "SLURM_RESTART_COUNT": "0"}
    driver = subprocess.Popen(
        ["bash", DRIVER], cwd=tmp_path, env=os.environ | job, stderr=subprocess.PIPE, text=True
    )
    wait_until((tmp_path / "started").exists, 20)
    driver.send_signal(signal.SIGUSR1)
    _, said = driver.communicate(timeout=20)
    assert (tmp_path / "finished").exists(), "the shell went before Snakemake"
    assert driver.returncode == 0
    assert "Slurm refuses" in said
