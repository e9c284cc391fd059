"""`async-rollout run CONFIG`: trains one cell, in this directory's `results/` unless told otherwise."""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from async_rollout.commands.environment import set_hub_home, set_up_environment, switch_hub_off
from async_rollout.commands.sweeps import add_dataset, add_sweep, sweep_of
from async_rollout.config.cells import Cell, cell_named, cells, config_hash, resolve
from async_rollout.config.errors import ConfigError, Problem
from async_rollout.config.load import run_from_json
from async_rollout.config.run import RunConfig
from async_rollout.config.sweep import SweepConfig
from async_rollout.places import model_directory
from async_rollout.records.cells import SUMMARY_FILE, SummaryError, read_summary
from async_rollout.runtime.share import own_cores, own_gpus

_SETTLE_SEC = 10.0  # until a GPU is free of a run that was killed just now


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    add_sweep(parser, required=False)
    parser.add_argument("--cell", metavar="ID", help="which cell, where the sweep has several")
    add_dataset(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="the cell's directory")
    workflow = parser.add_argument_group("instead of CONFIG, for the workflow")
    workflow.add_argument("--resolved", metavar="JSON", help="the cell's whole configuration")
    workflow.add_argument("--data", type=Path, metavar="DIR", help="the prepared tasks")


def execute(args: Namespace) -> None:
    """Train the cell."""
    if args.resolved:
        _require(args, "out", "data")
        run = run_from_json(args.resolved)
        set_up_environment()
        with own_gpus(run), own_cores(run):
            look_at_gpus(run.placed())
            train(run, args.out, args.data)
        return
    _require(args, "config")
    sweep = sweep_of(args)
    cell = _chosen(sweep, args)
    run, out = resolve(sweep, cell), args.out or Path(cell.directory(sweep.experiment))
    if _done(run, out):
        print(f"{out / SUMMARY_FILE}: done already", file=sys.stderr)
        return
    set_up_environment()
    set_hub_home(sweep.hub)
    with own_gpus(run):  # of the cores, a run by hand may have all
        look_at_gpus(run.placed())
        _prepare(run, out / "data")
        train(run, out, out / "data")
    print(out / SUMMARY_FILE)


def train(run: RunConfig, out: Path, data: Path) -> None:
    """Run one cell whose tasks and model are there."""
    switch_hub_off()
    from async_rollout.runners.cell import run_cell

    run_cell(run, out=out, data=data, model=model_directory(run))


def look_at_gpus(run: RunConfig) -> None:
    """Say what is wrong with the GPUs before anything is loaded on them: here, on the node that has them.

    Raises ConfigError where there is no such GPU, SystemExit(1) where one is not fit for the run.
    """
    if all(device == "cpu" for device in (*run.train.devices, *run.rollout.devices)):
        return
    _require_cuda(run)
    from async_rollout.doctor.machine import gpu_findings, read_gpus

    patience = time.monotonic() + _SETTLE_SEC
    while True:
        found = [finding for finding in gpu_findings(run, read_gpus()) if finding.level != "ok"]
        failed = any(finding.level == "fail" for finding in found)
        if not failed or time.monotonic() >= patience:
            break
        time.sleep(0.5)
    for finding in found:
        print(finding, file=sys.stderr)
    if failed:
        raise SystemExit(1)


def _require_cuda(run: RunConfig) -> None:
    """ConfigError if torch finds fewer CUDA devices than the run names; makes no context on them."""
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    import torch

    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for key, devices in (("train.devices", run.train.devices), ("rollout.devices", run.rollout.devices)):
        for device in devices:
            if device != "cpu" and int(device.partition(":")[2] or 0) >= there:
                what = f"torch {torch.__version__} finds {there} CUDA devices here"
                fix = "set it to cpu, or install a CUDA build of torch"
                raise ConfigError([Problem(key, device, what, fix)])


def _require(args: Namespace, *names: str) -> None:
    for name in names:
        if getattr(args, name) is None:
            wanted = "CONFIG" if name == "config" else f"--{name}"
            raise ConfigError(
                [Problem(wanted, None, "missing", "async-rollout run config/demo.yaml --cell ID")]
            )


def _chosen(sweep: SweepConfig, args: Namespace) -> Cell:
    """The one cell that is meant; ConfigError that lists the cells if there are several."""
    if args.cell:
        return cell_named(sweep, args.cell, args.dataset)
    known = [cell for cell in cells(sweep) if args.dataset in (None, cell.dataset_slug)]
    if len(known) != 1:
        ids = "".join(f"\n    {cell.id}" for cell in known)
        what = f"this sweep has {len(known)} cells"
        raise ConfigError([Problem("--cell", None, what, f"name one of them:{ids}")], args.config)
    return known[0]


def _done(run: RunConfig, out: Path) -> bool:
    """Whether `out` holds this very run; ConfigError if it holds another one."""
    try:
        found = read_summary(out / SUMMARY_FILE).config_hash
    except (FileNotFoundError, SummaryError):
        return False
    if found != config_hash(run):
        what = "holds a finished run of another configuration"
        raise ConfigError([Problem("--out", str(out), what, "give another --out, or change `experiment`")])
    return True


def _prepare(run: RunConfig, data: Path) -> None:
    """The tasks, into the cell's own directory; the model, where the workflow would put it too."""
    from async_rollout.tasks.prepare import prepare

    prepare(run.dataset, run.data, data)
    provide_model(run)


def provide_model(run: RunConfig) -> None:
    """Build or fetch the model of a run where it is not there yet."""
    model = model_directory(run)
    if model is None or (model / "config.json").is_file():
        return
    if run.model.id == "embedded":
        from async_rollout.commands.warm_start import build

        build(run.embedded, model)
    else:
        from async_rollout.commands.fetch import fetch

        fetch(run.model.id, model)
