"""`async-rollout prepare`: a dataset's tasks as the files that cells read, or GSM8K's file as a task file."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from async_rollout.commands.sweeps import block_from_json
from async_rollout.config.data import DataConfig
from async_rollout.config.errors import ConfigError, Problem
from async_rollout.config.load import load_sweep


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "dataset",
        metavar="DATASET",
        help="`sort`, `jsonl:PATH`, or `gsm8k` to convert the file given by --from",
    )
    parser.add_argument("--out", required=True, type=Path, help="directory to write (gsm8k: task file)")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="GSM8K's train or test file")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--config", metavar="CONFIG", help="the sweep whose `data` block gives sizes and seed")
    sizes.add_argument("--block", metavar="JSON", help="that block itself")


def execute(args: Namespace) -> None:
    """Write the files."""
    if args.dataset == "gsm8k":
        _convert(args)
        return
    if args.source:
        raise ConfigError(
            [Problem("--from", str(args.source), "is for gsm8k", "name the file as jsonl:PATH")]
        )
    from async_rollout.tasks.prepare import prepare

    if args.block:
        data = block_from_json(DataConfig, args.block)
    else:
        data = load_sweep(args.config).data if args.config else DataConfig()
    prepare(args.dataset, data, args.out)
    print(f"{args.dataset}: tasks written to {args.out}", file=sys.stderr)


def _convert(args: Namespace) -> None:
    from async_rollout.tasks.gsm8k import convert_gsm8k

    if args.source is None or not args.source.is_file():
        raise ConfigError([Problem("--from", args.source, "no such file", "name GSM8K's train or test file")])
    written = convert_gsm8k(args.source, args.out)
    print(f"{args.out}: {written} tasks; use it as jsonl:{args.out}", file=sys.stderr)
