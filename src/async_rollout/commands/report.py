"""`async-rollout report CONFIG`: one page with the tables and figures of a sweep, which opens offline.

Beside it: what there is (`INDEX.md`), with checksums (`manifest.json`), and the link `results/latest`.
"""

import subprocess
from argparse import ArgumentParser, Namespace
from pathlib import Path

import async_rollout
from async_rollout.commands.sweeps import add_sweep_or_json, gathered, sweep_or_json
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
        "command": args.made_by or f"snakemake --profile profiles/local --configfile {args.config}",
    }
    cells = gathered(sweep)
    write_report(cells, path, sweep.report, **names, made_with=made_with())
    write_index(cells, path.parent, **names)
    point_latest(path.parent)
    print(path)


def made_with() -> dict[str, str]:
    """The commit of this checkout and the digest of its code, which the cells' `code` can be held against."""
    package = Path(async_rollout.__file__).parent
    describe = ["git", "-C", str(package), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        found = subprocess.run(describe, capture_output=True, text=True, check=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        found = "not known: no git checkout"  # an installed package, or no git
    return {"this report: commit": found, "this report: code": code_digest(package)}
