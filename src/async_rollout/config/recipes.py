"""Algorithms as named presets of plain keys, applied before the arms: an arm may change any of them.

Where `objective.name` is not preset, the sweep's axis `decoupled` decides it. `batch.groups` is never
preset: with G = 1 an update then has as many prompts and an eighth of the trajectories of G = 8.
"""

from typing import Any

RECIPES: dict[str, dict[str, Any]] = {
    "grpo": {"advantage.name": "group"},
    "grpo_dis": {"advantage.name": "group", "objective.name": "dis"},
    "single_dis": {"advantage.name": "batch", "batch.group_size": 1, "objective.name": "dis"},
    "sao": {"advantage.name": "gae", "batch.group_size": 1, "objective.name": "dis"},
    "running_mean": {"advantage.name": "running_mean", "batch.group_size": 1},
}
