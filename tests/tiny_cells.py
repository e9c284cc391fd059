"""Cells small enough for a test: real processes, policies without a model unless told otherwise."""

import json
from dataclasses import dataclass
from pathlib import Path

from async_rollout.config.run import RunConfig
from async_rollout.runners.cell import run_cell
from async_rollout.tasks.prepare import prepare


def cell_config(**blocks) -> RunConfig:
    """A resolved areal cell on `sort` with the tabular policy; keyword arguments replace blocks."""
    defaults = {
        "experiment": "test",
        "dataset": "sort",
        "mode": "areal",
        "algorithm": "grpo",
        "arm": "",
        "k": 4,
        "decoupled": 1,
        "seed": 0,
        "objective": {"name": "decoupled"},
        "model": {"backend": "tabular"},
        "batch": {"groups": 4, "group_size": 4},
        "data": {"train_size": 24, "eval_size": 8},
        "train": {"updates": 20},
        "optim": {"lr": 0.1},
        "evaluation": {"every": 10},
    }
    return RunConfig.model_validate(defaults | blocks)


@dataclass(frozen=True)
class FinishedCell:
    """What a cell left behind."""

    out: Path
    config: RunConfig
    data: Path

    @property
    def summary(self) -> dict:
        return json.loads((self.out / "summary.json").read_text())

    def rows(self, name: str) -> list[dict]:
        return [json.loads(line) for line in (self.out / name).read_text().splitlines()]


def run_tiny(config: RunConfig, directory: Path, model: Path | None = None) -> FinishedCell:
    """Prepare the data below `directory` and run the cell there, in this process and its children."""
    cell = FinishedCell(directory / "cell", config, directory / "data")
    if not cell.data.exists():
        prepare(config.dataset, config.data, cell.data)
    run_cell(config, out=cell.out, data=cell.data, model=model)
    return cell
