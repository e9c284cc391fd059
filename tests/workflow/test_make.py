"""What `make` leaves alone."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("src/async_rollout.egg-info", "tests/__pycache__", "benchmarks", ".venv/bin", "logs/demo",
                 "results/demo/sort", ".snakemake/metadata"):  # fmt: skip
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "results/demo/report.html").write_text("kept")
    return tmp_path


def make(directory: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["make", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


def test_clean_leaves_results_and_what_is_known_of_them(copy):
    assert make(copy, "clean").returncode == 0
    assert (copy / "results/demo/report.html").read_text() == "kept"
    assert (copy / ".snakemake/metadata").is_dir()
    for name in (".venv", "logs", "tests/__pycache__", "src/async_rollout.egg-info"):
        assert not (copy / name).exists()


def test_no_python_is_said_in_one_line(copy):
    make(copy, "clean")
    done = make(copy, "demo", "PYTHON=")
    assert done.returncode != 0
    assert "no Python 3.11 or newer" in done.stderr
    assert not (copy / ".venv").exists()
