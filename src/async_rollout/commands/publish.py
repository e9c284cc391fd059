"""`async-rollout publish EXPERIMENT_DIR --out DIR`: a snapshot of an experiment, small enough to commit."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from async_rollout.config.errors import ConfigError, Problem


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("experiment", metavar="EXPERIMENT_DIR", type=Path, help="such as results/demo")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="such as results/published/demo",
    )
    parser.add_argument("--limit-mb", type=float, default=30, help="refuse a larger snapshot (default: 30)")


def execute(args: Namespace) -> None:
    """Copy it, and say how large it is."""
    from async_rollout.analysis.manifest import ManifestError
    from async_rollout.analysis.publish import AGAIN, PublishError, publish

    try:
        size = publish(args.experiment, args.out, int(args.limit_mb * 1e6))
    except PublishError as error:
        raise ConfigError([Problem("EXPERIMENT_DIR", str(args.experiment), str(error), error.fix)]) from error
    except (FileNotFoundError, ManifestError) as error:
        raise ConfigError([Problem("EXPERIMENT_DIR", str(args.experiment), str(error), AGAIN)]) from error
    print(f"{args.out}: {size / 1e6:.1f} MB")
