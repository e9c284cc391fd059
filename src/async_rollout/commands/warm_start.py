"""`async-rollout warm-start`: the embedded model, trained on demonstrations to where RL can start."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from async_rollout.commands.environment import set_up_environment
from async_rollout.commands.sweeps import add_sweep, block_from_json, sweep_of
from async_rollout.config.model import WarmStartConfig

EVERY = 50  # steps between two progress lines


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    add_sweep(parser, required=False)
    parser.add_argument("--block", metavar="JSON", help="the `warm_start` block itself, instead of CONFIG")
    parser.add_argument("--out", required=True, type=Path, help="directory to write, Hugging Face format")


def execute(args: Namespace) -> None:
    """Build the model."""
    if args.block:
        config = block_from_json(WarmStartConfig, args.block)
    elif args.config:
        sweep = sweep_of(args)
        config = sweep.warm_start.on(sweep.datasets[0])
    else:
        config = WarmStartConfig()
    build(config, args.out)


def build(config: WarmStartConfig, directory: Path) -> None:
    """Build the embedded model in `directory`, telling how it goes on stderr."""
    set_up_environment()
    from async_rollout.learner.warm_start import warm_start

    def tell(step: int, loss: float) -> None:
        if step % EVERY == 0 or step == config.steps:
            print(f"[warm start] step {step}/{config.steps}  loss {loss:.3f}", file=sys.stderr, flush=True)

    result = warm_start(config, directory, tell)
    sampled, greedy = result["pass_rate_sampled"], result["pass_rate_greedy"]
    print(
        f"[warm start] {directory}: held-out pass rate {sampled:.2f} sampled, {greedy:.2f} greedy",
        file=sys.stderr,
    )
