"""A cluster signals every process of a job: only the cell answers, and it gets its time."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from runs import wait_until

CELL = "results/tried/sort/runs/areal-grpo-k0-dec1-s0/summary.json"
SOON = 100
PROGRAM = f"""#!{sys.executable}
import os, pathlib, signal, sys, time

def stop(*_):
    time.sleep(1)  # the step under way
    print("kept", file=sys.stderr, flush=True)
    sys.exit(143)

if sys.argv[1] != "run":
    os.execv("bin/stand-in", ["bin/stand-in", *sys.argv[1:]])
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGUSR1, stop)
pathlib.Path("running").touch()
time.sleep({SOON})
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_what_is_around_a_cell_stays_until_it_has_kept_its_state(make_checkout, number):
    checkout = make_checkout()
    program = checkout.directory / "bin/async-rollout"
    program.rename(program.with_name("stand-in"))
    program.write_text(PROGRAM)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", "sweep.yaml", "--", CELL]
    driver = subprocess.Popen(
        command, cwd=checkout.directory, env=checkout.environment(), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: (checkout.directory / "running").exists() or driver.poll() is not None, SOON)
        os.killpg(driver.pid, number)
        assert driver.wait(SOON) == 1, "the cell failed, and Snakemake saw it"
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
    log = checkout.directory / "logs/tried/sort/areal-grpo-k0-dec1-s0.log"
    assert log.read_text() == "kept\n"
