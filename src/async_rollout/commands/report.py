"""`async-rollout report CONFIG`: one page with the tables and figures of a sweep, which opens offline.

Beside it: what there is (`INDEX.md`), with checksums (`manifest.json`), and the link `results/latest`.
"""

import os
import shlex
import subprocess
from argparse import ArgumentParser, Namespace
from pathlib import Path

import async_rollout
from async_rollout.commands.sweeps import add_sweep_or_json, gathered, sweep_or_json
from async_rollout.config.errors import ConfigError, Problem
from async_rollout.config.load import split_override
from async_rollout.places import report_file
from async_rollout.runners.provenance import code_digest


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    add_sweep_or_json(parser)
    parser.add_argument(
        "--made-by", metavar="COMMAND", help="how the results are made again, as the report says"
    )


def execute(args: Namespace) -> None:
    """Write the report and its lists; it shows the figures that are drawn."""
    sweep = sweep_or_json(args)
    from async_rollout.analysis.index import point_latest, write_index
    from async_rollout.analysis.report import write_report

    path = report_file(sweep)
    names = {
        "experiment": sweep.experiment,
        "command": args.made_by or _made_by(args),
    }
    cells = gathered(sweep, over=args.over)
    write_report(cells, path, sweep.report, **names, made_with=made_with())
    write_index(cells, path.parent, **names)
    point_latest(path.parent)
    print(path)


def _made_by(args: Namespace) -> str:
    """The workflow's command that makes the results again; ConfigError if nobody has named a file."""
    if args.config is None:
        raise ConfigError([Problem("--made-by", None, "missing", "say how the results were made")])
    command = ["snakemake", "--profile", "profiles/local", "--configfile", os.path.relpath(args.config)]
    overrides = [_for_snakemake(text) for text in args.overrides]
    return shlex.join([*command, *(["--config", *overrides] if overrides else [])])


def _for_snakemake(override: str) -> str:
    """`train.updates=7` as `train={updates: 7}`: Snakemake knows no dotted keys."""
    (first, *path), value = split_override(override)
    for name in reversed(path):
        value = f"{{{name}: {value}}}"
    return f"{first}={value}"


def made_with() -> dict[str, str]:
    """The commit of this checkout and the digest of its code, which the cells' `code` can be held against."""
    package = Path(async_rollout.__file__).parent
    describe = ["git", "-C", str(package), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        found = subprocess.run(describe, capture_output=True, text=True, check=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        found = "not known: no git checkout"  # an installed package, or no git
    return {"this report: commit": found, "this report: code": code_digest(package)}
