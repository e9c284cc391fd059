"""`async-rollout report CONFIG`: one page with the tables and figures of a sweep, which opens offline."""

from argparse import ArgumentParser, Namespace

from async_rollout.commands.sweeps import add_sweep_or_json, gathered, sweep_or_json
from async_rollout.places import report_file


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    add_sweep_or_json(parser)
    parser.add_argument(
        "--made-by", metavar="COMMAND", help="how the results are made again, as the report says"
    )


def execute(args: Namespace) -> None:
    """Write the report; it shows the figures that are drawn."""
    sweep = sweep_or_json(args)
    from async_rollout.analysis.report import write_report

    path = report_file(sweep)
    command = args.made_by or f"snakemake --profile profiles/local --configfile {args.config}"
    write_report(gathered(sweep), path, sweep.report, experiment=sweep.experiment, command=command)
    print(path)
