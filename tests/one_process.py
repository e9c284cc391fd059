"""Runs of a tiny model in the modes of one process, and what they leave behind."""

import dataclasses
import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from async_rollout.config.model import WarmStartConfig
from async_rollout.config.run import RunConfig
from async_rollout.learner.warm_start import warm_start
from async_rollout.runners.cell import run_cell
from async_rollout.tasks.prepare import prepare

TINY = {  # solves a quarter of its tasks after four seconds
    "hidden_size": 32,
    "heads": 2,
    "kv_heads": 2,
    "intermediate_size": 64,
    "steps": 200,
    "lr": 8e-3,
    "marked_share": 1.0,
    "corrupted_share": 0.0,
}
CLOCK = {"seconds", "step_sec", "wait_sec"}  # of a commit: all else is repeatable


def run_config(mode: str, k: int, **blocks) -> RunConfig:
    """Six updates of four groups of four, with the final weights kept; keyword arguments replace blocks."""
    axes = {
        "experiment": "test",
        "dataset": "sort",
        "algorithm": "grpo",
        "arm": "",
        "decoupled": 1,
        "seed": 0,
    }
    defaults = {
        "data": {"train_size": 32, "eval_size": 8},
        "warm_start": TINY,
        "batch": {"groups": 4, "group_size": 4, "minibatches": 2},
        "objective": {"name": "decoupled"},
        "optim": {"lr": 1e-3},
        "train": {"updates": 6, "save_model": True},
        "evaluation": {"every": 3},
    }
    return RunConfig(mode=mode, k=k, **axes | defaults | blocks)


@dataclasses.dataclass(frozen=True)
class Ran:
    """What a finished run left in its directory."""

    summary: dict
    metrics: list[dict]
    results: list[dict]
    evals: list[dict]
    weights: dict[str, torch.Tensor]


class Bench:
    """Tasks, and if wanted a warm-started model, in a directory, on which runs are made."""

    def __init__(self, home: Path, *, model: bool = True) -> None:
        self.home = home
        config = run_config("sync", 0)
        prepare("sort", config.data, home / "data")
        if model:
            warm_start(WarmStartConfig(**TINY), home / "model")

    def run(self, name: str, config: RunConfig) -> Ran:
        """Run a cell and read what it wrote."""
        out = self.home / name
        run_cell(config, out=out, data=self.home / "data", model=self.home / "model")
        rows = {
            kind: [json.loads(line) for line in (out / f"{kind}.jsonl").read_text().splitlines()]
            for kind in ("metrics", "results", "evals")
        }
        (model,) = (out / "model").glob("*.safetensors")
        return Ran(json.loads((out / "summary.json").read_text()), **rows, weights=load_file(model))
