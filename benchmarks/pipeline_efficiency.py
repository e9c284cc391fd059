"""Claim: areal trains as fast as its slower half can, and faster than whoever takes turns.

Efficiency = areal ÷ min(rollout alone, trainer alone), in trained tokens/s. The two `alone`
rates are taken at the same time, each in a process on its own core, exchanging nothing, so
that what the cores take from each other cancels; the proximal pass counts to the trainer.
Two baselines on the same two cores, from phases that are timed apart with the same answers:

- sync-all: both cores generate, then both train; in each phase the faster of one process
  with two threads and two processes with one, whose exchange of gradients is not even counted;
- sync-split: one core generates, then the other trains.

With G and T the seconds of a batch's generation and training on one core and s their speed-up
on two, asynchrony can gain at most (G/s_G + T/s_T) ÷ max(G, T) over the one, and
(G + T) ÷ max(G, T) over the other. K = 4, slots = B·G/2, answers of long-tailed lengths,
lr too small to matter; areal's rate is taken once its pipeline is full. The 20 M model's answers are
cut at 128 tokens, and it takes longer to train than to generate: against sync-all there is nothing
to gain on two cores, as its bound says, so that 1.3 times is asked of the other model only.
"""

import os
import statistics
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from async_rollout.config.run import RunConfig
from async_rollout.tasks import sort
from async_rollout.tasks.prompts import prompt_text
from cells import cell_config, random_model, run
from measure import Claim, options, report, spread
from stage import Stage

SKIP = 5  # commits until the pipeline is full
WHOLE, HALVES = slice(None), (slice(0, None, 2), slice(1, None, 2))


def phases(stages: list[Stage], cores: list[int], order: str) -> dict[str, float]:
    """Seconds of one phase of a batch: on one core, and on two in the better way."""
    one, both = {cores[0]}, set(cores)
    alone = stages[0].begin(one, order, WHOLE).end()
    threads = stages[0].begin(both, order, WHOLE).end()
    halves = [
        stage.begin({core}, order, half) for stage, core, half in zip(stages, cores, HALVES, strict=True)
    ]
    return {"one": alone, "two": min(threads, max([half.end() for half in halves]))}


def measure(config: RunConfig, stages: list[Stage], tokens: int, seconds: float, directory: Path) -> dict:
    """One round of everything."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    halves = (
        stages[0].begin({cores[0]}, "generate", seconds, config.slots),
        stages[1].begin({cores[1]}, "train", seconds),
    )
    rollout, trainer = (half.end() for half in halves)
    areal = run(config, directory).steady(SKIP)["tokens_per_sec"]
    generation, training = (phases(stages, cores, order) for order in ("generate_batch", "train_batch"))
    longer = max(generation["one"], training["one"])
    turns = {
        "sync-all": generation["two"] + training["two"],
        "sync-split": generation["one"] + training["one"],
    }
    return {
        "rollout alone": rollout,
        "trainer alone": trainer,
        "areal": areal,
        "efficiency": areal / min(rollout, trainer),
        "G": generation["one"],
        "T": training["one"],
        "s_G": generation["one"] / generation["two"],
        "s_T": training["one"] / training["two"],
        **{name: tokens / took for name, took in turns.items()},
        **{f"areal / {name}": areal / (tokens / took) for name, took in turns.items()},
        **{f"bound {name}": took / longer for name, took in turns.items()},
        **{f"share {name}": areal / (tokens / took) / (took / longer) for name, took in turns.items()},
    }


def of_size(size: str, updates: int, repeats: int, seconds: float, limit: int) -> dict[str, list[float]]:
    """Rounds with one model; prints what was found."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        config = cell_config(
            random_model(directory / "model", size),
            batch={"groups": 4},
            rollout={"slots": 16},
            sampling={"max_new_tokens": limit},
            train={"updates": updates},
        )
        tasks, _ = sort.generate(64, 1, 0)
        stages = [Stage(config, [prompt_text(task, config.prompt) for task in tasks]) for _ in range(2)]
        try:
            both = set(sorted(os.sched_getaffinity(0))[:2])
            tokens, _ = (stage.begin(both, "record").end() for stage in stages)
            rounds = [measure(config, stages, tokens, seconds, directory) for _ in range(repeats)]
        finally:
            for stage in stages:
                stage.close()
    found = {what: [r[what] for r in rounds] for what in rounds[0]}
    print(f"{size} parameters: " + ", ".join(f"{what} {spread(values)}" for what, values in found.items()))
    return found


def main(arguments: list[str]) -> int:
    """Print a line for each model, and the claims' lines last, efficiency at the very end."""
    settings = options(__doc__, arguments)
    torch.set_num_threads(1)
    if settings.quick:
        results = {"0.1 M": of_size("0.1 M", 12, 1, 3.0, 256)}
    else:
        results = {
            "0.1 M": of_size("0.1 M", 60, 7, 15.0, 256),
            "20 M": of_size("20 M", 20, 3, 40.0, 128),
        }
    claims = []
    for size, found in results.items():
        middle = {what: statistics.median(values) for what, values in found.items()}
        claims += [
            Claim(f"{size}: areal over sync-all, share of its bound", middle["share sync-all"], 0.85),
            Claim(f"{size}: areal over sync-split, share of its bound", middle["share sync-split"], 0.85),
            Claim(f"{size}: areal over the slower of rollout and trainer alone", middle["efficiency"], 0.9),
        ]
    tailed = statistics.median(results["0.1 M"]["areal / sync-all"])
    claims.insert(0, Claim("0.1 M: areal over sync-all", tailed, 1.3))
    return report(settings, claims, results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
