"""Writes what `async-rollout` would write, without training: the workflow sees no difference."""

import json
import os
import sys
import time
from pathlib import Path

from async_rollout.cli import main
from async_rollout.config.cells import Cell, config_hash
from async_rollout.config.load import run_from_json
from async_rollout.config.run import RunConfig
from async_rollout.runtime.share import own_gpus
from summaries import summary_record


def option(name: str) -> str:
    return sys.argv[sys.argv.index(f"--{name}") + 1]


def run() -> None:
    config, out = run_from_json(option("resolved")), Path(option("out"))
    if out.name == os.environ.get("STAND_IN_FAILS"):
        sys.exit(f"{out.name} fails, as it was told to")
    assert (Path(option("data")) / "manifest.json").is_file()
    with own_gpus(config):
        train(config, out)


def train(config: RunConfig, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    if config.gpus:
        begun = time.monotonic()
        time.sleep(0.5)
        with open("gpus.log", "a") as log:
            print(os.environ["CUDA_VISIBLE_DEVICES"], begun, time.monotonic(), file=log)
    record = summary_record(
        Cell.of(config),
        config_hash=config_hash(config),
        config=config.model_dump(mode="json"),
        experiment=config.experiment,
    )
    (out / "summary.json").write_text(json.dumps(record))
    with open("trained.log", "a") as log:
        print(out.name, file=log)


def model() -> None:
    out = Path(option("out"))
    out.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "model.safetensors", "warm_start.json"):
        (out / name).write_text("{}")


def figures() -> None:
    from async_rollout.analysis.figures.catalog import FIGURES

    asked = [option("dataset")] if "--dataset" in sys.argv else ["sort"]
    for dataset in asked:
        directory = Path("results/tried", dataset, "figures")
        directory.mkdir(parents=True, exist_ok=True)
        for name in FIGURES:
            for ending in ("png", "svg", "csv"):
                (directory / f"{name}.{ending}").write_text("")


def report() -> None:
    Path("results/tried/report.html").write_text("<html></html>")


ours = {"run": run, "warm-start": model, "figures": figures, "report": report}
if sys.argv[1] in ours:
    ours[sys.argv[1]]()
else:
    sys.exit(main())
