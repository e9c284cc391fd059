"""`async-rollout monitor RESULTS`: a web page that shows how the cells of a sweep are doing, live."""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from async_rollout.monitor.server import PORT, serve
from async_rollout.places import RESULTS

TOKEN_VARIABLE = "ASYNC_ROLLOUT_TOKEN"


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("results", metavar="RESULTS", nargs="?", type=Path, default=RESULTS)
    parser.add_argument("--host", default="127.0.0.1", help="address; others than loopback need a token")
    parser.add_argument("--port", type=int, default=PORT, help="0 takes any that is free")
    parser.add_argument(
        "--token",
        default=os.environ.get(TOKEN_VARIABLE),
        help=f"what a reader must show; better given as {TOKEN_VARIABLE}, as others see command lines",
    )


def execute(args: Namespace) -> None:
    """Serve until interrupted."""
    serve(args.results, args.host, args.port, args.token)
