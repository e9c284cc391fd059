"""Claim: the machine itself costs next to nothing for each sample.

Mode areal in all of its processes with the `dummy` backend, which computes nothing: prompts
are admitted, decoded a character a step, judged as numbers, grouped, handed over, `trained`, published
and written to disk as in any run. B = 16, G = 8. Counted is the CPU time of every process of
the run, judges included, from the moment when all are ready to the last commit.
"""

import os
import statistics
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from async_rollout.tasks.jsonl import write_tasks
from async_rollout.tasks.task import Task
from cells import cell_config, run
from measure import Claim, options, report, spread

AIM_MICROSECONDS = 150.0


def additions(count: int) -> list[Task]:
    """Problems whose answers are numbers."""
    return [
        Task(f"sum-{a}", f"What is {a} + {7 * a}?", "gsm8k", gold_answer=str(8 * a)) for a in range(count)
    ]


def main(arguments: list[str]) -> int:
    """Print a line for each role, and the claim's line last."""
    settings = options(__doc__, arguments)
    torch.set_num_threads(1)
    updates, repeats = (150, 1) if settings.quick else (600, 5)
    results = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as directory:
            tasks = Path(directory, "tasks.jsonl")
            write_tasks(tasks, additions(1001))
            config = cell_config(
                Path("none"),
                dataset=f"jsonl:{tasks}",
                model={"backend": "dummy"},
                batch={"groups": 16, "group_size": 8},
                sampling={"max_new_tokens": 16},
                kl={"coef": 0},
                data={"train_size": 1000, "eval_size": 1},
                train={"updates": updates},
            )
            summary = run(config, Path(directory)).summary
            seconds = summary["cpu_seconds"]
            samples = summary["samples"]["generated"]
            results.append(
                {
                    "samples_per_sec": samples / summary["wall_clock_sec"],
                    "microseconds": {k: 1e6 * s / samples for k, s in seconds.items()},
                }
            )
    for role in results[0]["microseconds"]:
        print(f"{role}: CPU µs a sample {spread([r['microseconds'][role] for r in results])}")
    print(f"samples/s {spread([r['samples_per_sec'] for r in results])}")
    total = statistics.median(sum(r["microseconds"].values()) for r in results)
    claim = Claim("CPU µs a sample over all processes", total, AIM_MICROSECONDS, at_most=True)
    return report(settings, [claim], results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
