"""A clean copy of the workflow, in which a stand-in for `async-rollout` does the work at once."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import async_rollout

ROOT = Path(__file__).parents[2]
STAND_IN = Path(__file__).with_name("stand_in.py")
SWEEP = """\
experiment: tried
modes: [areal]
staleness_k: [0, 4]
decoupled: [1]
seeds: [0]
arms:
  careful: {optim.lr: 5e-5}
"""


class Checkout:
    """A copy of the repository's workflow without results, and what was done in it."""

    def __init__(self, directory: Path):
        self.directory = directory
        for name in ("workflow", "config", "profiles", "envs"):
            shutil.copytree(ROOT / name, directory / name)
        shutil.copy(ROOT / "Snakefile", directory)
        (directory / "sweep.yaml").write_text(SWEEP)
        program = directory / "bin" / "async-rollout"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\n{STAND_IN.read_text()}")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def environment(self) -> dict[str, str]:
        """In which the stand-in is found first."""
        paths = [Path(async_rollout.__file__).parents[1], ROOT / "tests"]
        return {
            **os.environ,
            "PATH": os.pathsep.join([str(self.directory / "bin"), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
        }

    def snakemake(self, *arguments: str, fails: str | None = None) -> str:
        """What `snakemake --cores 2 ARGUMENTS` writes; it must succeed, unless the cell `fails`."""
        environment = self.environment()
        if fails:
            environment["STAND_IN_FAILS"] = fails
        command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
        done = subprocess.run(
            command, cwd=self.directory, env=environment, capture_output=True, text=True, timeout=300
        )
        assert (done.returncode == 0) == (fails is None), done.stdout + done.stderr
        return done.stdout + done.stderr

    def gpus(self, *readings: dict) -> None:
        """The GPUs that whoever looks at this machine finds."""
        (self.directory / "gpus.json").write_text(json.dumps(readings))

    def planned(self, *arguments: str) -> set[str]:
        """The cells that a dry run would train."""
        return set(re.findall(r"Cell sort (\S+)", self.snakemake("-n", *arguments)))

    def trained(self) -> list[str]:
        """The cells that were trained since this was last asked."""
        log = self.directory / "trained.log"
        cells = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return sorted(cells)


@pytest.fixture(scope="module")
def make_checkout(tmp_path_factory) -> Callable[[], Checkout]:
    return lambda: Checkout(tmp_path_factory.mktemp("checkout"))
