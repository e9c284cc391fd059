"""Claim: a sweep of 2,000 cells is planned, tabulated and drawn in less than a minute each.

A copy of the workflow with 2,016 cells: the dry run of a clean checkout, the graph of its rules, and
the dry run when all is done; then tables, figures and report of as many summaries, which are the
published demo's with other seeds and a little noise. Seconds are wall time, memory is the largest
process's.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from async_rollout.config.cells import Cell, cells, config_hash, resolve
from async_rollout.config.load import load_sweep
from async_rollout.config.run import RunConfig
from async_rollout.config.sweep import SweepConfig
from async_rollout.places import dataset_directory, model_directory
from async_rollout.records.cells import read_metrics
from async_rollout.records.files import write_json
from measure import Claim, options, report

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "results/published/demo/sort/runs/areal-grpo-k4-dec1-s0"
SWEEP = """\
experiment: scale
modes: [areal, lagged]
arms:
  behavior: {{objective.name: behavior}}
staleness_k: [0, 1, 2, 4]
decoupled: [0, 1]
seeds: [{seeds}]
train: {{updates: 60}}
"""
CELLS_A_SEED = 24
SECONDS, GIB = 60.0, 1.0


@dataclass(frozen=True)
class Took:
    """What a command took."""

    seconds: float
    cpu_seconds: float  # of all its processes
    gib: float  # of its largest process

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s ({self.cpu_seconds:.1f} s of CPU), {self.gib:.2f} GiB"


def took(directory: Path, *command: str) -> Took:
    """Run a command of this environment; SystemExit with its output if it fails."""
    program, *arguments = command
    begun = time.monotonic()
    with tempfile.TemporaryFile() as output:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        process = subprocess.Popen(
            [shutil.which(program, path=path), *arguments],
            cwd=directory,
            env=os.environ | {"PATH": path},
            stdout=output,
            stderr=output,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            sys.exit(f"{' '.join(command)}:\n{output.read().decode()}")
    return Took(time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20)


def checkout(directory: Path, seeds: int) -> SweepConfig:
    """A copy of the workflow that has run nothing, with its sweep."""
    for name in ("workflow", "config", "profiles", "envs"):
        shutil.copytree(ROOT / name, directory / name)
    shutil.copy(ROOT / "Snakefile", directory)
    (directory / "sweep.yaml").write_text(SWEEP.format(seeds=", ".join(map(str, range(seeds)))))
    return load_sweep(directory / "sweep.yaml")


def finish(directory: Path, sweep: SweepConfig) -> None:
    """Every cell's summary and commits, and what they were made from."""
    template = json.loads((PUBLISHED / "summary.json").read_text())
    run = resolve(sweep, cells(sweep)[0])
    write_json(directory / dataset_directory(sweep, "sort") / "data/manifest.json", {})
    write_json(directory / model_directory(run) / "config.json", {})
    rows = "".join(json.dumps(asdict(row)) + "\n" for row in read_metrics(PUBLISHED))
    for cell in cells(sweep):
        run, out = resolve(sweep, cell), directory / cell.directory(sweep.experiment)
        write_json(out / "summary.json", _record(template, cell, run))
        (out / "metrics.jsonl").write_text(rows)


def _record(template: dict, cell: Cell, run: RunConfig) -> dict:
    """The published summary as another cell's."""
    noise = random.Random(cell.id)
    rate = noise.uniform(0.5, 0.8)
    points = [p | {"sampled": p["sampled"] * noise.uniform(0.9, 1.0)} for p in template["eval_pass_rate"]]
    axes = {name: getattr(run, name) for name in ("mode", "arm", "k", "decoupled", "seed")}
    given = {"config": run.model_dump(mode="json"), "config_hash": config_hash(run), "experiment": "scale"}
    return template | axes | given | {"pass_rate_last": rate, "eval_pass_rate": points}


def main(arguments: list[str]) -> int:
    """A line a command, then the claims."""
    settings = options(__doc__, arguments)
    seeds = 10 if settings.quick else 84
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        sweep = checkout(directory, seeds)
        snakemake = ("snakemake", "--cores", "2", "--configfile", "sweep.yaml")
        found: dict[str, Took] = {}

        def measure(what: str, *command: str) -> None:
            found[what] = took(directory, *command)
            print(f"{what}: {found[what]}", flush=True)

        measure("dry run, nothing done", *snakemake, "-n")
        measure("rule graph", *snakemake, "--rulegraph")
        if (directory / "results").exists():
            sys.exit("to look at the plan has touched results")
        finish(directory, sweep)
        measure("dry run, all done", *snakemake, "-n")
        for command in ("tables", "figures", "report"):
            measure(command, "async-rollout", command, "sweep.yaml")
    n = seeds * CELLS_A_SEED
    drawn = sum(found[command].seconds for command in ("tables", "figures"))
    plans = [found["dry run, nothing done"], found["dry run, all done"]]
    claims = [
        Claim(f"GiB of a dry run of {n} cells", max(p.gib for p in plans), GIB, at_most=True),
        Claim(f"seconds of a dry run of {n} cells", max(p.seconds for p in plans), SECONDS, at_most=True),
        Claim(f"seconds for tables and figures of {n} cells", drawn, SECONDS, at_most=True),
    ]
    return report(settings, claims, {what: vars(each) for what, each in found.items()})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
