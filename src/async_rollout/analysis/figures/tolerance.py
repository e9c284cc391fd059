"""What staleness costs: pass rate, and how far importance weights have to reach."""

from async_rollout.analysis.figures.against_k import Measure, against_k
from async_rollout.analysis.figures.drawing import Drawing, Scene
from async_rollout.records.summary import Summary

NO_CELL = ("no cell has finished", "any finished cell gives this figure (config/demo.yaml)")


def final_pass_rate(summary: Summary) -> float | None:
    """Held-out pass rate (sampled) of the last version that was evaluated; None if there is none."""
    points = summary.eval_pass_rate
    return max(points, key=lambda point: point.version).sampled if points else None


PASS_RATE = Measure("pass_rate", "held-out pass rate", final_pass_rate, -0.02, 1.02)


def reward_vs_staleness(scene: Scene) -> Drawing:
    """Held-out pass rate of the last version by K."""
    missing = (
        "no finished cell has been evaluated",
        "any finished cell gives this figure (config/demo.yaml)",
    )
    return against_k(scene, "Pass rate against allowed staleness", [PASS_RATE], scene.cells.done(), missing)


def importance_weights(scene: Scene) -> Drawing:
    """Effective sample size and share of masked tokens by K."""
    measures = [
        Measure("ess_ratio", "effective sample\nsize ÷ n", lambda s: s.ess_ratio, -0.02, 1.02),
        Measure("mask_fraction", "share of tokens\nmasked", lambda s: s.mask_fraction),
    ]
    return against_k(scene, "Importance weights", measures, scene.cells.done(), NO_CELL)
