"""Claim: rollouts that are interrupted by new weights train faster than rollouts that drain.

The same run (areal, K = 4) with the three values of `rollout.update` on the same long-tailed
lengths, in turn: trained tokens/s once the pipeline is full, mean staleness of what was
trained, and the share of the rollout worker's time that went into reloading and recomputing.
`keep_kv` decodes on with keys and values of old weights: no recomputing, but no policy's
distribution either.
"""

import os
import statistics
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from cells import Finished, cell_config, random_model, run
from measure import Claim, in_turn, options, report, spread

ARMS = ("interrupt", "drain", "keep_kv")
SKIP = 4  # commits until the pipeline is full


def one(model: Path, update: str, updates: int, directory: Path) -> Finished:
    """One run of an arm."""
    config = cell_config(
        model,
        train={"updates": updates},
        rollout={"slots": 8, "update": update},
        batch={"groups": 4, "minibatches": 1},
    )
    return run(config, directory)


def main(arguments: list[str]) -> int:
    """Print a line for each arm, and the claim's line last."""
    settings = options(__doc__, arguments)
    torch.set_num_threads(1)
    updates, repeats = (12, 1) if settings.quick else (40, 5)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        model = random_model(directory / "model", "0.1 M")
        runs = in_turn({arm: lambda arm=arm: one(model, arm, updates, directory) for arm in ARMS}, repeats)
    results = {}
    for arm, finished in runs.items():
        steady = [f.steady(SKIP) for f in finished]
        results[arm] = {
            "tokens_per_sec": [s["tokens_per_sec"] for s in steady],
            "staleness": [s["staleness"] for s in steady],
            "rollout_busy": [f.summary["busy_fraction"]["rollout"] for f in finished],
            "recompute_share": [f.summary["recompute_sec"] / f.summary["wall_clock_sec"] for f in finished],
            "interruptions": [f.summary["interruptions"] for f in finished],
            "resumed_samples": [f.summary["resumed_samples"] for f in finished],
            "recomputed_tokens": [f.summary["recomputed_tokens"] for f in finished],
        }
        print(f"{arm}: " + ", ".join(f"{what} {spread(values)}" for what, values in results[arm].items()))
    rates = {arm: result["tokens_per_sec"] for arm, result in results.items()}
    ratio = statistics.median(a / b for a, b in zip(rates["interrupt"], rates["drain"], strict=True))
    claim = Claim("trained tokens/s, interrupted rollouts over drained ones", ratio, 1.0)
    return report(settings, [claim], results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
