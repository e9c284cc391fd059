"""Whole cells with delays injected on purpose: they take their time, and what they compute stays the same."""

import time

import pytest

from async_rollout.rewards.delayed import delay
from async_rollout.types import SampleId
from tiny_cells import cell_config, run_tiny


@pytest.mark.parametrize("mode", ["sync", "lagged", "async", "areal"])
def test_a_delayed_cell_takes_its_time_and_is_the_same(mode, tmp_path):
    """Every delay in every mode; where a run repeats itself, its numbers are those without delays."""

    def cell(name, **stress):
        directory = tmp_path / name
        directory.mkdir()
        shared = {"mode": mode, "k": 0, "train": {"updates": 4}, "rollout": {"slots": 16}}
        return run_tiny(cell_config(**shared, stress=stress), directory)

    stress = {"judge_sec": 0.02, "decode_sec": 0.01, "commit_sec": 0.1}
    begun = time.monotonic()
    slow = cell("slow", **stress)
    assert slow.summary["updates"] == 4
    assert min(row["step_sec"] for row in slow.rows("metrics.jsonl")) > 0.1
    steps = max(row["tokens"] for row in slow.rows("results.jsonl"))
    held = max(delay(0.02, 0, SampleId(group, i)) for group in range(16) for i in range(4))
    assert slow.summary["wall_clock_sec"] > 4 * 0.1 + steps * 0.01 + held
    assert slow.summary["wall_clock_sec"] < time.monotonic() - begun
    if mode in ("sync", "lagged"):
        timeless = ("seconds", "step_sec", "wait_sec")
        rows = [
            [{k: v for k, v in row.items() if k not in timeless} for row in c.rows("metrics.jsonl")]
            for c in (slow, cell("quick"))
        ]
        assert rows[0] == rows[1]
