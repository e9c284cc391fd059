"""`async-rollout recipe NAME`: the plain keys that an algorithm stands for."""

from argparse import ArgumentParser, Namespace

import yaml

from async_rollout.config.errors import ConfigError, Problem, closest
from async_rollout.config.recipes import RECIPES


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(RECIPES)}")


def execute(args: Namespace) -> None:
    """Print the recipe as YAML that an arm could hold."""
    if args.name not in RECIPES:
        raise ConfigError([Problem("recipe", args.name, "no such algorithm", closest(args.name, RECIPES))])
    print(yaml.safe_dump(RECIPES[args.name], sort_keys=False), end="")
