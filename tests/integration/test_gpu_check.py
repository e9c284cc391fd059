"""The check that a GPU's owner runs, on the CPU: every part of it works, and a part that fails is seen."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def gpu_check():
    sys.path.insert(0, str(BENCHMARKS))
    import gpu_check

    yield gpu_check
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def setting(gpu_check, tmp_path_factory):
    directory = tmp_path_factory.mktemp("check")
    model = gpu_check.write_model(directory / "model", gpu_check.tiny_architecture())
    return gpu_check.Setting("cpu", "cpu", model, gpu_check.TINY, directory)


@pytest.mark.parametrize("autocast", ["float16", "bfloat16"])
def test_sixteen_bits_are_near_and_train(gpu_check, setting, autocast):
    row = gpu_check.precision(setting, autocast)
    assert row.ok, row
    assert ("an overflow is skipped" in row.found) == (autocast == "float16")


def test_an_overflow_that_is_not_skipped_is_seen(gpu_check, setting, monkeypatch):
    monkeypatch.setattr(gpu_check, "overflow_is_skipped", lambda *parts: False)
    assert not gpu_check.precision(setting, "float16").ok


def test_the_engine_is_held_against_generate_and_weights_arrive_as_they_left(gpu_check, setting):
    assert gpu_check.engine_rate(setting).ok
    slower = replace(setting, scale=replace(setting.scale, judged=True))
    row = gpu_check.engine_rate(slower)
    assert row.ok == (float(row.found.rpartition(" ")[2].removesuffix("x")) > 1)
    assert gpu_check.publication(setting).ok


def test_a_part_that_raises_is_a_row_that_failed(gpu_check, setting, monkeypatch):
    monkeypatch.setattr(gpu_check, "invariants", lambda setting: iter(()))
    for part in ("precision", "engine_rate", "modes"):
        monkeypatch.setattr(gpu_check, part, lambda *args: gpu_check.Row("fine", "", True))
    monkeypatch.setattr(gpu_check, "publication", lambda setting: 1 / 0)
    rows = list(gpu_check.check(setting))
    assert [row.ok for row in rows] == [True, True, True, False, True]
    assert "ZeroDivisionError" in rows[3].found


def test_without_a_gpu_it_says_so(gpu_check, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu_check.main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [f"gpu-check: torch {torch.__version__} finds no CUDA device here"]


@pytest.mark.long
def test_the_whole_of_it(tmp_path):
    file = tmp_path / "rows.json"
    command = [sys.executable, str(BENCHMARKS / "gpu_check.py"), "--device", "cpu", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(file.read_text())["rows"]
    assert len(rows) == 9
    assert all(row["ok"] for row in rows)
    assert len(done.stdout.splitlines()) == 10
