"""Where the hub's cache is kept: said once a sweep, for whatever fetches; no cell changes with it."""

import os
from pathlib import Path

import pytest

from async_rollout.cli import main
from async_rollout.config.cells import cells, config_hash, resolve
from async_rollout.config.load import sweep_from_dict

SWEEP = "experiment: x\nhub: {home: ~/kept}\ndata: {train_size: 8, eval_size: 2}\n"


def test_it_is_in_no_cells_hash():
    plain, moved = (
        sweep_from_dict({"experiment": "x", **more}) for more in ({}, {"hub": {"home": "/cache"}})
    )
    assert [config_hash(resolve(plain, c)) for c in cells(plain)] == [
        config_hash(resolve(moved, c)) for c in cells(moved)
    ]


@pytest.mark.parametrize(("sweep", "expected"), [(SWEEP, "/home/me/kept"), ("experiment: x\n", "/before")])
def test_what_fetches_keeps_it_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweep, expected):
    monkeypatch.setenv("HF_HOME", "/before")
    monkeypatch.setenv("HOME", "/home/me")
    (tmp_path / "x.yaml").write_text(sweep)
    config = ["--config", str(tmp_path / "x.yaml")]
    assert main(["prepare", "sort", *config, "--out", str(tmp_path / "data")]) == 0
    assert os.environ["HF_HOME"] == expected
