"""`async-rollout doctor CONFIG`: checks a sweep, its model and this machine; one line a check.

Exit code 1 if a check failed. The embedded model is built where it is not there yet.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from async_rollout.commands.environment import set_hub_home, set_up_environment
from async_rollout.commands.run import provide_model
from async_rollout.commands.sweeps import add_sweep, sweep_of
from async_rollout.config.cells import cells, resolve
from async_rollout.config.run import RunConfig
from async_rollout.config.sweep import SweepConfig
from async_rollout.doctor.finding import Finding
from async_rollout.places import model_directory

_READ_BY_CHECKS = ("model", "warm_start", "prompt", "sampling", "data")


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    add_sweep(parser)


def execute(args: Namespace) -> None:
    """Print every finding; SystemExit(1) after the last if one failed."""
    set_up_environment()
    from async_rollout.doctor.settings import settings_checks

    sweep = sweep_of(args)
    set_hub_home(sweep.hub)
    failed = 0
    for finding in (*settings_checks(sweep), *_on_models(sweep)):
        print(finding, flush=True)
        failed += finding.level == "fail"
    if failed:
        print(f"{failed} checks failed", file=sys.stderr)
        raise SystemExit(1)


def _on_models(sweep: SweepConfig) -> Iterator[Finding]:
    """The checks of each model, prompt, sampling and dataset that the sweep has."""
    from async_rollout.doctor.memory import memory_check
    from async_rollout.doctor.model import model_checks
    from async_rollout.doctor.probe import probe
    from async_rollout.doctor.prompts import prompts_check
    from async_rollout.runners.cell import with_model

    for runs in _alike(sweep):
        run = runs[-1]
        try:
            provide_model(run)
            loaded = with_model(run, model_directory(run))
            yield prompts_check(loaded)
            probed = probe(loaded)
        except Exception as error:  # whatever keeps a model from answering is what the doctor is asked for
            yield Finding("fail", "model", f"{run.model.id} on {run.train.devices[0]}: {_first_line(error)}")
            continue
        yield from model_checks(probed)
        yield memory_check(probed, runs)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _alike(sweep: SweepConfig) -> list[list[RunConfig]]:
    """The runs of each model, prompt, sampling and dataset; those of mode areal last."""
    runs: dict[tuple, list[RunConfig]] = {}
    for run in sorted(
        (resolve(sweep, cell).placed() for cell in cells(sweep)), key=lambda run: run.mode == "areal"
    ):
        blocks = (getattr(run, block).model_dump_json() for block in _READ_BY_CHECKS)
        runs.setdefault((run.dataset, *blocks), []).append(run)
    return list(runs.values())
