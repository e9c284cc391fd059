"""The profiles, and how they come to where Snakemake looks for them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
NAMES = ("local", "slurm")


@pytest.fixture
def install(tmp_path):
    """Runs `make install-profiles` in a copy, for a user whose configuration lies in `home`."""
    shutil.copy(ROOT / "Makefile", tmp_path)

    def make() -> subprocess.CompletedProcess:
        return subprocess.run(
            ["make", "-o", ".venv/.slurm", f"BIN={Path(sys.executable).parent}", "install-profiles"],
            cwd=tmp_path,
            env=os.environ | {"XDG_CONFIG_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return make


def test_profiles_are_found_by_name(install, tmp_path):
    for _ in range(2):  # again changes nothing
        assert install().returncode == 0
        for name in NAMES:
            link = tmp_path / "home/snakemake" / name
            assert link.readlink() == tmp_path / "profiles" / name


def test_a_profile_of_ones_own_stays(install, tmp_path):
    own = tmp_path / "home/snakemake/slurm/config.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("jobs: 3")
    done = install()
    assert done.returncode != 0
    assert "a profile of your own" in done.stderr
    assert own.read_text() == "jobs: 3"


def test_leftover_jobs_are_looked_for_under_the_name_that_jobs_get():
    profile = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
    rules = (ROOT / "workflow/rules/slurm.smk").read_text()
    assert re.search(r'JOBNAME_PREFIX = "(.*?)"', rules)[1] == profile["slurm-jobname-prefix"]
    driver = (ROOT / "profiles/slurm/driver.sbatch").read_text()
    name = re.search(r"--job-name=(\S+)", driver)[1]
    assert not name.startswith(f"{profile['slurm-jobname-prefix']}_"), "the driver is no leftover"


def test_no_rule_retries_by_itself():
    """It would try again inside the same allocation; the profile has the retries."""
    for path in (ROOT / "workflow/rules").glob("*.smk"):
        assert "retries:" not in path.read_text(), path.name
    assert yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())["retries"] > 0
