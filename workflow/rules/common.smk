"""The sweep, its cells, and helpers that the rules share."""

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

from async_rollout.analysis.figures.catalog import FIGURES, style_digest
from async_rollout.commands.environment import ALLOCATOR
from async_rollout.config.cells import (
    canonical_json,
    cells,
    config_hash,
    inert_warnings,
    resolve,
)
from async_rollout.config.errors import ConfigError
from async_rollout.config.load import sweep_from_dict
from async_rollout.places import (
    RESULTS,
    data_name,
    dataset_directory,
    model_directory,
    report_file,
)
from async_rollout.records.cells import SummaryError, read_summary
from async_rollout.records.expected import ExpectedCell, write_expected

try:
    SWEEP = sweep_from_dict(config)
except ConfigError as error:
    raise WorkflowError(str(error)) from None

# Rules call `async-rollout`; it lies beside snakemake also where no environment is activated.
if shutil.which("async-rollout") is None:
    BESIDE = str(Path(sys.executable).parent)
    os.environ.update(PATH=os.pathsep.join([BESIDE, os.environ.get("PATH", "")]))
os.environ.update(ALLOCATOR)

if workflow.is_main_process:
    for warning in inert_warnings(SWEEP):
        print(f"warning: {warning}", file=sys.stderr)

EXPERIMENT = f"{RESULTS}/{SWEEP.experiment}"
REPORT = str(report_file(SWEEP))
LOGS = f"logs/{SWEEP.experiment}"

# A resolved configuration decides a cell and nothing else does; it names no absolute path.
RUNS = {(cell.dataset_slug, cell.id): resolve(SWEEP, cell) for cell in cells(SWEEP)}
DATA = {
    (dataset, data_name(run.data, SWEEP.data)): run
    for (dataset, _), run in RUNS.items()
}
MODELS = {
    directory.name: run
    for run in RUNS.values()
    if (directory := model_directory(run)) is not None
}


wildcard_constraints:
    dataset="[a-z0-9-]+",
    cell="[^/]+",
    data="data(-[0-9a-f]{8})?",
    figure="|".join(FIGURES),


def expected_cells():
    """The sweep's cells for who watches it: also those that have not started."""
    axes = ("mode", "algorithm", "arm", "k", "decoupled", "seed")
    return [
        ExpectedCell(
            dataset=dataset,
            cell=cell,
            updates=run.train.updates,
            **{axis: getattr(run, axis) for axis in axes},
        )
        for (dataset, cell), run in RUNS.items()
    ]


onstart:
    use_a_status_command_that_answers()
    read_states_by_their_first_word()
    cancel_orphans()
    write_expected(Path(EXPERIMENT), expected_cells())


SUMMARIES = [
    f"{EXPERIMENT}/{dataset}/runs/{cell}/summary.json" for dataset, cell in RUNS
]


def run_of(wildcards):
    """The configuration of one cell."""
    try:
        return RUNS[wildcards.dataset, wildcards.cell]
    except KeyError:
        raise WorkflowError(
            f"{wildcards.cell} is no cell of dataset {wildcards.dataset} in this sweep"
        ) from None


def cell_inputs(wildcards):
    """Tasks and model of a cell. Small files with known content stand for them, so that to have
    made them again, with the same result, is no reason to train again.

    Not `ancient`: where such an input is remade, Snakemake 9 forgets to look whether the jobs
    behind it have run at all.
    """
    run = run_of(wildcards)
    redo_unless_done(wildcards, run)
    data = data_name(run.data, SWEEP.data)
    model = model_directory(run)
    return {
        "data": f"{EXPERIMENT}/{wildcards.dataset}/{data}/manifest.json",
        "model": [] if model is None else f"{model}/config.json",
    }


def redo_unless_done(wildcards, run):
    """Have Snakemake run a cell again whose summary is damaged or of another configuration.

    Its own triggers see neither: a cut file still exists, and a summary that came from
    elsewhere has no metadata. This is what --forcerun FILE does; a dry run shows it and
    changes nothing.
    """
    path = f"{EXPERIMENT}/{wildcards.dataset}/runs/{wildcards.cell}/summary.json"
    try:
        done = read_summary(Path(path)).config_hash == config_hash(run)
    except FileNotFoundError:
        return
    except SummaryError as error:
        print(f"{error}; the cell is run again", file=sys.stderr)
        done = False
    if not done and workflow.is_main_process:
        workflow.dag.forcefiles.add(path)


def cores_of(wildcards):
    """Every core that a cell computes with, whatever its mode: no other cell is timed beside it."""
    return run_of(wildcards).cores


def memory_of(wildcards, attempt):
    """Megabytes: as configured, or enough for the small models, and more at each attempt."""
    return SWEEP.cluster.mem_mb or attempt * (
        1500 + 800 * run_of(wildcards).rollout.workers
    )


def fit_for(wildcards):
    """What a cell with a GPU waits for; a cell on the CPU waits for nothing.

    What is left of a cell that failed is out of date.
    """
    if not run_of(wildcards).gpus:
        return []
    fit = f"{LOGS}/{wildcards.dataset}/{wildcards.cell}.fit"
    summary = f"{EXPERIMENT}/{wildcards.dataset}/runs/{wildcards.cell}/summary.json"
    if workflow.is_main_process and os.path.exists(fit) and not os.path.exists(summary):
        workflow.dag.forcefiles.add(fit)
    return fit


def summaries_of(wildcards):
    """The summaries of a dataset's cells, for what is made of all of them."""
    redo_if_partial()
    return [
        f"{EXPERIMENT}/{dataset}/runs/{cell}/summary.json"
        for dataset, cell in RUNS
        if dataset == wildcards.dataset
    ]


def every_dataset(pattern, **values):
    """A pattern below the datasets' directories, for each dataset."""
    return expand(
        f"{EXPERIMENT}/{{dataset}}/{pattern}",
        dataset=list(dict.fromkeys(dataset for dataset, _ in RUNS)),
        **values,
    )


def source_of(wildcards):
    """The file that a dataset's tasks come from, if there is one."""
    kind, _, path = DATA[wildcards.dataset, wildcards.data].dataset.partition(":")
    return path if kind == "jsonl" else []


def block_json(block):
    """One block of the configuration as text."""
    return json.dumps(block.model_dump(mode="json"), sort_keys=True)


def sweep_json(wildcards):
    """The sweep as one text, for the commands that look at all of it."""
    seen = SWEEP.model_dump(mode="json", exclude_unset=True, exclude={"cluster"})
    return json.dumps(seen, sort_keys=True)


def made_by():
    """The command that makes the results again, as the report tells it."""
    where = "slurm" if workflow.non_local_exec else "local"
    files = [os.path.relpath(path) for path in workflow.overwrite_configfiles]
    overrides = workflow.config_settings.config_args
    command = ["snakemake", "--profile", f"profiles/{where}"]
    command += ["--configfile", *files] if files else []
    return shlex.join([*command, *(["--config", *overrides] if overrides else [])])
