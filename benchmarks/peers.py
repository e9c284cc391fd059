"""Claim: on the same two cores this trains more tokens a second than TRL's GRPOTrainer.

The same model directory (a random Qwen2), the same prompts, G, limit of length and optimizer
steps, one compute thread a process. One process against one: mode `sync` against GRPOTrainer.
Two against two: mode `areal` (a rollout worker and a trainer, K = 4) against GRPOTrainer as
two data-parallel ranks under torchrun. Both draw answers from the same policy, so lengths have
one distribution, which is geometric and cut at the limit: at 64 tokens almost half of the answers
are of that length, at 256 one in fifteen is, and whoever pads or waits for the longest pays. The mean
length of each is printed. Our micro-batch is a chosen one; TRL has a minibatch's rows in one forward.
TRL has an environment of its own, made on first use below `benchmarks/.peers`. Arms take turns; medians.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from async_rollout.tasks import sort
from async_rollout.tasks.prompts import prompt_text
from cells import cell_config, random_model, run
from measure import Claim, in_turn, options, report, spread

HERE = Path(__file__).parent
ENVIRONMENT = HERE / ".peers"
PACKAGES = ["trl==1.16.0", "torch==2.13.0", "transformers==5.24.0"]
GROUPS, GROUP_SIZE, MINIBATCHES = 8, 8, 2
MICROBATCH_TOKENS = 1024  # of ours: what one forward works on stays in a core's cache
AIMS = {"1 M": 2.0, "20 M": 1.2}


@dataclass(frozen=True)
class Case:
    """A model and a limit of length; updates are counted from `skip` on, when the pipeline is full."""

    size: str
    tokens: int
    updates: int
    skip: int
    trl_updates: int  # synchronous: nothing to fill
    trl_skip: int
    repeats: int

    def __str__(self) -> str:
        return f"{self.size}, at most {self.tokens} tokens"


QUICK = [Case("1 M", 64, 8, 2, 6, 2, 1)]
FULL = [
    Case("1 M", 64, 30, 6, 16, 2, 3),
    Case("1 M", 256, 30, 6, 10, 2, 3),
    Case("20 M", 64, 14, 5, 8, 1, 2),
    Case("20 M", 256, 10, 5, 4, 1, 1),
]


def peer_python() -> Path:
    """The interpreter of the environment that has TRL."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / "ready").exists():
        print(f"installing {', '.join(PACKAGES)} into {ENVIRONMENT.relative_to(HERE.parent)}", flush=True)
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        (ENVIRONMENT / "ready").touch()
    return python


def trl(case: Case, model: Path, prompts: Path, processes: int) -> dict[str, float]:
    """One run of GRPOTrainer; what peer_trl.py prints."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    options = {
        "model": model,
        "prompts": prompts,
        "groups": GROUPS,
        "group-size": GROUP_SIZE,
        "minibatches": MINIBATCHES,
        "tokens": case.tokens,
        "updates": case.trl_updates,
        "skip": case.trl_skip,
    }
    command = [
        str(peer_python()),
        *(launcher if processes > 1 else []),
        str(HERE / "peer_trl.py"),
        *(f"--{name}={value}" for name, value in options.items()),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"GRPOTrainer failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def ours(case: Case, model: Path, mode: str, directory: Path) -> dict[str, float]:
    """One cell of this project."""
    config = cell_config(
        model,
        mode=mode,
        k=0 if mode == "sync" else 4,
        batch={"groups": GROUPS, "group_size": GROUP_SIZE, "minibatches": MINIBATCHES},
        sampling={"max_new_tokens": case.tokens},
        train={"updates": case.updates, "microbatch_tokens": MICROBATCH_TOKENS},
    )
    done = run(config, directory)
    length = statistics.mean(row["length_mean"] for row in done.commits[case.skip :])
    return {"tokens_per_sec": done.steady(case.skip)["tokens_per_sec"], "mean_length": length}


def measure(case: Case) -> dict[str, list[dict[str, float]]]:
    """All four arms in turn."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        model = random_model(directory / "model", case.size)
        tasks, _ = sort.generate(64, 1, 0)
        prompts = directory / "prompts.json"
        instructions = cell_config(model).prompt
        prompts.write_text(json.dumps([prompt_text(task, instructions) for task in tasks]))
        arms = {
            "sync": lambda: ours(case, model, "sync", directory),
            "TRL, 1 process": lambda: trl(case, model, prompts, 1),
            "areal": lambda: ours(case, model, "areal", directory),
            "TRL, 2 processes": lambda: trl(case, model, prompts, 2),
        }
        found = in_turn(arms, case.repeats)
    for arm, rounds in found.items():
        rates = spread([r["tokens_per_sec"] for r in rounds])
        length = statistics.median(r["mean_length"] for r in rounds)
        print(f"{case}, {arm}: trained tokens/s {rates}, mean length {length:.1f}", flush=True)
    return found


def main(arguments: list[str]) -> int:
    """Print a line for each arm, and the claims' lines last."""
    settings = options(__doc__, arguments)
    torch.set_num_threads(1)
    peer_python()
    results = {case: measure(case) for case in (QUICK if settings.quick else FULL)}
    claims = []
    for case, found in results.items():
        rate = {arm: statistics.median(r["tokens_per_sec"] for r in rounds) for arm, rounds in found.items()}
        for us, them in (("sync", "TRL, 1 process"), ("areal", "TRL, 2 processes")):
            claims.append(Claim(f"{case}: {us} over {them}", rate[us] / rate[them], AIMS[case.size]))
    return report(settings, claims, {str(case): found for case, found in results.items()})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
