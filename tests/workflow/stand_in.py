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
    (out / "config.json").write_text("{}")
    (out / "warm_start.json").write_text(json.dumps({"HF_HOME": os.environ.get("HF_HOME")}))
    (out / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")


def figures() -> None:
    from async_rollout.analysis.figures.catalog import FIGURES
    from drawn import PNG

    asked = [option("dataset")] if "--dataset" in sys.argv else ["sort"]
    for dataset in asked:
        directory = Path("results/tried", dataset, "figures")
        directory.mkdir(parents=True, exist_ok=True)
        for name in [option("figure")] if "--figure" in sys.argv else FIGURES:
            (directory / f"{name}.png").write_bytes(PNG)
            (directory / f"{name}.svg").write_text("<svg></svg>")
            (directory / f"{name}.csv").write_text("cell\n")


def preflight() -> None:
    from async_rollout.doctor import machine

    gpus = [machine.Gpu(**reading) for reading in json.loads(Path("gpus.json").read_text())]
    machine.read_gpus = lambda: tuple(gpus)
    sys.exit(main())


ours = {"preflight": preflight, "run": run, "warm-start": model, "figures": figures}
if sys.argv[1] in ours:
    ours[sys.argv[1]]()
else:
    sys.exit(main())
