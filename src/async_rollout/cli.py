"""The command line: `async-rollout COMMAND`. Only the command that is asked for is imported.

Exit codes: 0 done, 1 failed, 2 an error in what was asked for (nothing has been started),
130 after Ctrl-C, 141 when whoever reads the output has gone (`| head`), 143 after SIGTERM.
"""

import os
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "run": "train one cell of a sweep",
    "cells": "list the cells of a sweep",
    "prepare": "write a dataset's training and evaluation tasks",
    "warm-start": "build the embedded model",
    "fetch": "copy a model from a hub into a directory",
    "recipe": "print the keys that an algorithm stands for",
    "doctor": "check a sweep, its model and this machine before any hour is spent",
    "cost": "cells, hours and disk of a sweep, by finished cells like its own",
    "eval": "score any model with the prompts, engine and judges of runs",
    "judge": "judge answers in a file as runs do",
    "reward-workers": "start, show or stop reward workers that share files with a run",
    "preflight": "check whether this machine can take a sweep's runs now",
    "tables": "tables of a sweep, finished or not",
    "figures": "figures of a sweep, finished or not",
    "report": "one self-contained HTML page of a sweep, finished or not",
    "monitor": "a live web page of a results directory",
    "status": "a results directory as a table",
    "check": "count the rows of finished cells again and hold them against the invariants",
    "publish": "a snapshot of an experiment, small enough to commit",
    "export": "commits of cells for tensorboard, trackio or wandb",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    if argv is None:  # the workflow's shell ignores SIGTERM and would pass that on
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0] not in COMMANDS:
        _overview().parse_args(argv or ["--help"])
    name = argv[0]
    command = import_module(f"async_rollout.commands.{name.replace('-', '_')}")
    parser = ArgumentParser(prog=f"async-rollout {name}", description=command.__doc__.partition(": ")[2])
    command.configure(parser)
    args = parser.parse_intermixed_args(argv[1:])

    from async_rollout.config.errors import ConfigError
    from async_rollout.tasks.task import TaskError

    try:
        command.execute(args)
        sys.stdout.flush()
    except (ConfigError, TaskError) as error:
        print(f"async-rollout {name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is buffered still
        return 141
    return 0


def _overview() -> ArgumentParser:
    """Lists the commands, and refuses what is none: it never lets a command through."""
    parser = ArgumentParser(
        prog="async-rollout", description="Asynchronous reinforcement learning of language models, measured."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, about in COMMANDS.items():
        commands.add_parser(name, help=about)
    return parser


if __name__ == "__main__":
    sys.exit(main())
