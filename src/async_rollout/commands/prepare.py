"""`async-rollout prepare`: a dataset's tasks as the files that cells read; a public file as a task file."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from async_rollout.commands.environment import set_hub_home
from async_rollout.commands.sweeps import block_from_json
from async_rollout.config.data import DataConfig
from async_rollout.config.errors import ConfigError, Problem
from async_rollout.config.load import load_sweep


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "dataset",
        metavar="DATASET",
        help="a source, as the key `datasets` names it; with --from, `gsm8k` or `math`: what the file holds",
    )
    parser.add_argument("--out", required=True, type=Path, help="directory to write (with --from: task file)")
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help="JSONL file of GSM8K or MATH to convert"
    )
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--config", metavar="CONFIG", help="the sweep whose `data` block gives sizes and seed")
    sizes.add_argument("--block", metavar="JSON", help="that block itself")


def execute(args: Namespace) -> None:
    """Write the files."""
    if args.source:
        _convert(args)
        return
    from async_rollout.tasks.prepare import prepare

    if args.block:
        data = block_from_json(DataConfig, args.block)
    elif args.config:
        sweep = load_sweep(args.config)
        set_hub_home(sweep.hub)
        data = sweep.data
    else:
        data = DataConfig()
    prepare(args.dataset, data, args.out)
    print(f"{args.dataset}: tasks written to {args.out}", file=sys.stderr)


def _convert(args: Namespace) -> None:
    from async_rollout.tasks.convert import CONVERTERS, convert

    if args.dataset not in CONVERTERS:
        fix = f"for {' and '.join(CONVERTERS)}; name any other file as jsonl:PATH"
        raise ConfigError([Problem("--from", str(args.source), f"no file of `{args.dataset}` is known", fix)])
    if not args.source.is_file():
        fix = f"name a JSONL file of {args.dataset}"
        raise ConfigError([Problem("--from", str(args.source), "no such file", fix)])
    written, left_out = convert(args.dataset, args.source, args.out)
    without = f" ({left_out} left out: their gold answers cannot be read)" if left_out else ""
    print(f"{args.out}: {written} tasks{without}; use it as jsonl:{args.out}", file=sys.stderr)
