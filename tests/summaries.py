"""Synthetic cells: summaries and metrics with chosen numbers, written as a run would write them."""

import random
from dataclasses import fields
from pathlib import Path

from async_rollout.analysis.plans import Plan
from async_rollout.config.cells import Cell, hash_of
from async_rollout.records.files import JsonlWriter, write_json
from async_rollout.records.rows import MetricsRow
from async_rollout.records.summary import Summary

AXES = [field.name for field in fields(Cell)]


def a_cell(**axes) -> Cell:
    """A cell of mode areal with K = 4 and seed 0, unless told otherwise."""
    base = {
        "dataset": "sort",
        "mode": "areal",
        "algorithm": "grpo",
        "arm": "",
        "k": 4,
        "decoupled": 1,
        "seed": 0,
    }
    return Cell(**base | axes)


def summary_record(cell: Cell, **changes) -> dict:
    """A sound `summary.json` of `cell`, with some top-level fields changed."""
    bound = 0 if cell.k == 0 else 3 if cell.k == "inf" else cell.k
    histogram = {"0": 8000} if bound == 0 else {str(age): 8000 // (age + 1) for age in range(bound + 1)}
    trained = sum(histogram.values())
    mean = sum(int(age) * n for age, n in histogram.items()) / trained
    wall = 100.0 / (1 + bound / 4)
    objective = cell.arm or ("decoupled" if cell.decoupled else "live")
    axes = {axis: getattr(cell, axis) for axis in AXES}
    config = {**axes, "model": {"id": "embedded"}, "objective": {"name": objective}}
    record = {
        "schema_version": 1,
        "config_hash": hash_of(config),
        "experiment": "test",
        **axes,
        "status": "done",
        "backend": "causal_lm",
        "objective": objective,
        "config": config,
        "eval_pass_rate": [
            {
                "version": v,
                "updates": v,
                "seconds": wall * v / 60,
                "sampled": 0.25 + v / 120,
                "greedy": 0.30 + v / 120,
                "n": 200,
            }
            for v in (0, 20, 40, 60)
        ],
        "pass_rate_first": 0.25,
        "pass_rate_last": 0.75,
        "reward_mean": 0.5,
        "infrastructure_failures": 0,
        "policy_version": 60,
        "updates": 60,
        "empty_updates": 0,
        "critic_updates": 0,
        "minibatches": 2,
        "samples": {"generated": 1000, "trained": 1000, "dropped": {}, "abandoned": 0},
        "tokens": {"generated": trained, "trained": trained, "dropped": {}, "abandoned": 0},
        "groups": {"submitted": 125, "trained": 125, "dropped": 0, "rejected": 0, "abandoned": 0},
        "mixed_version_samples": 30 * bound,
        "turns": 1000,
        "interrupted_turns": 30 * bound,
        "length_mean_trained": 8.0,
        "length_mean_generated": 8.0,
        "wall_clock_sec": wall,
        "setup_wall_clock_sec": 5.0,
        "evaluation_wall_clock_sec": 2.0,
        "lost_sec": 0.0,
        "attempts": 1,
        "trained_tokens_per_sec": trained / wall,
        "generated_tokens_per_sec": trained / wall,
        "updates_per_sec": 60 / wall,
        "cpu_seconds": {"trainer": 40.0, "rollout": 50.0},
        "busy_fraction": {"trainer": 0.5, "rollout": 0.9},
        "staleness_histogram": {"trained": histogram, "generated": histogram, "dropped": {}},
        "staleness_mean": mean,
        "staleness_max": bound,
        "interruptions": 10 * bound,
        "resumed_samples": 40 * bound,
        "recomputed_tokens": 300 * bound,
        "recompute_sec": 0.5,
        "queue_depth_trace": {"seconds": [1.0, 2.0], "waiting": [0, 3], "running": [4, 4]},
        "event_counts": {"commit": 60},
        "event_trace": {"seconds": [1.0], "name": ["commit"], "role": ["trainer"], "left_out": 0},
        "clip_fraction": 0.01,
        "mask_fraction": 0.0,
        "importance_weight_max": 1.5,
        "ess_ratio": 0.98,
        "kl": 0.001,
        "entropy": 0.8 + random.Random(cell.id).uniform(0.0, 0.01),  # no two runs are the same
        "grad_norm": 0.3,
        "grad_cosine": None,
        "zero_variance_groups": 0.25,
        "value_loss": None,
        "explained_variance": None,
        "software": {"async_rollout": "0.1.0", "torch": "2.13.0"},
        "machine": {"cpu": "test CPU", "cores": 2},
    }
    return record | changes


def a_plan(cell: Cell, **changes) -> Plan:
    """What the sound summary of `cell` was asked to be."""
    record = summary_record(cell)
    asked = {name: record[name] for name in ("config_hash", "objective", "minibatches", "updates")}
    return Plan(**asked | changes)


def summary(cell: Cell, **changes) -> Summary:
    """`summary_record`, validated."""
    return Summary.model_validate(summary_record(cell, **changes))


def cell_directory(results: Path, cell: Cell) -> Path:
    """Where a run of `cell` writes."""
    return results / cell.dataset_slug / "runs" / cell.id


def write_cell(results: Path, cell: Cell, *, metrics: bool = True, **changes) -> Path:
    """Write summary and metrics of `cell`; the path of the summary."""
    directory = cell_directory(results, cell)
    record = summary_record(cell, **changes)
    if metrics:
        (directory / "metrics.jsonl").unlink(missing_ok=True)
        writer = JsonlWriter(directory / "metrics.jsonl")
        writer.write(*metrics_rows(record))
        writer.close()
    write_json(directory / "summary.json", record)
    return directory / "summary.json"


def metrics_rows(record: dict) -> list[MetricsRow]:
    """One row a commit, whose pass rate goes from the first to the last of the record, with noise."""
    noise = random.Random(record["config_hash"])
    updates, first, last = record["updates"], record["pass_rate_first"], record["pass_rate_last"]
    rows = []
    for update in range(updates):
        rate = first + (last - first) * update / max(updates - 1, 1)
        correct = sum(noise.random() < rate for _ in range(128))
        values = dict.fromkeys((field.name for field in fields(MetricsRow)), 0)
        values |= {
            "version": update + 1,
            "seconds": float(update),
            "groups": [update],
            "staleness": {"0": 512},
            "dropped": {},
            "correct": correct,
            "incorrect": 128 - correct,
            "trained_samples": 128,
            "reward_mean": correct / 128,
            "step_sec": 0.6 * record["wall_clock_sec"] / updates,
            "wait_sec": 0.4 * record["wall_clock_sec"] / updates,
            "empty": False,
        }
        rows.append(MetricsRow(**values))
    return rows


def grid(seeds: int = 2, ks: tuple = (0, 4), modes: tuple = ("sync", "areal")) -> list[Cell]:
    """The cells of a sweep shaped like the demo: base arm with both objectives, and `behavior`."""
    cells = []
    for seed in range(seeds):
        for mode in modes:
            if mode == "sync":
                cells += [a_cell(mode=mode, k=0, arm=arm, seed=seed) for arm in ("", "behavior")]
                continue
            for k in ks:
                cells += [a_cell(mode=mode, k=k, decoupled=dec, seed=seed) for dec in (0, 1)]
                cells.append(a_cell(mode=mode, k=k, arm="behavior", seed=seed))
    return cells


def write_grid(results: Path, cells: list[Cell]) -> dict[Cell, Path]:
    """Write all `cells`, each with its own small deviation, as a real sweep has; their paths."""
    paths = {}
    for cell in cells:
        noise = random.Random(cell.id)
        record = summary_record(cell)
        tilt = noise.uniform(-0.04, 0.04) - (0.03 * (cell.k if isinstance(cell.k, int) else 5) / 4)
        points = [p | {"sampled": p["sampled"] + tilt * p["version"] / 60} for p in record["eval_pass_rate"]]
        speed = record["trained_tokens_per_sec"] * noise.uniform(0.95, 1.05)
        paths[cell] = write_cell(
            results,
            cell,
            eval_pass_rate=points,
            trained_tokens_per_sec=speed,
            pass_rate_last=0.75 + tilt,
        )
    return paths
