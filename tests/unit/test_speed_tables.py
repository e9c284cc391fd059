"""Speedups and throughput against K = 0: by hand, paired by seed, never against asynchronous K = 0."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from async_rollout.analysis.collect import collect
from async_rollout.analysis.plans import Compute, compute_of
from async_rollout.analysis.statistics import paired_ratio
from async_rollout.analysis.tables.speed import AREAL_PUBLISHED, speedups, throughput_paper_comparison
from async_rollout.config.cells import Cell
from async_rollout.config.report import ReportConfig
from summaries import a_cell, summary_record, write_cell

FAST = [150.0, 170.0, 120.0]
SYNC = [100.0, 110.0, 90.0]


def cells_of(results: Path, speeds: dict[tuple, list[float]], **changes):
    """Cells by (mode, arm, K) with these trained tokens a second, one a seed."""
    paths = {}
    for (mode, arm, k), values in speeds.items():
        for seed, speed in enumerate(values):
            cell = a_cell(mode=mode, arm=arm, k=k, seed=seed)
            paths[cell] = write_cell(results, cell, trained_tokens_per_sec=speed, **changes)
    return collect(paths)


def row(frame: pd.DataFrame, **where) -> pd.Series:
    for column, value in where.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def test_a_speedup_is_the_geometric_mean_of_pairs_with_its_interval(tmp_path: Path) -> None:
    cells = cells_of(tmp_path, {("sync", "", 0): SYNC, ("areal", "", 4): FAST, ("areal", "", 0): [1, 1, 1]})
    found = row(speedups(cells, ReportConfig()), k=4)
    logs = np.log(np.divide(FAST, SYNC))
    low, high = np.exp(stats.t.interval(0.95, 2, loc=logs.mean(), scale=stats.sem(logs)))
    assert found["baseline"] == "sync-grpo-k0-dec1"
    assert found["pairs"] == 3
    assert [found[f"ratio_{part}"] for part in ("mean", "low", "high")] == pytest.approx(
        [np.exp(logs.mean()), low, high]
    )
    assert (found["compute"], found["baseline_compute"]) == ("2 cores", "1 core")
    assert found["ratio_per_unit_mean"] == pytest.approx(np.exp(logs.mean()) / 2)
    assert (found["claim"], found["claim_per_unit"]) == ("higher", "lower")


def test_asynchronous_k0_is_a_row_and_never_the_baseline(tmp_path: Path) -> None:
    cells = cells_of(tmp_path, {("areal", "", 0): SYNC, ("areal", "", 4): FAST})
    frame = speedups(cells, ReportConfig())
    assert list(frame["k"]) == [0, 4]
    assert list(frame["baseline"]) == ["missing", "missing"]
    assert frame["ratio_mean"].isna().all()


def test_the_bound_is_what_sync_measured(tmp_path: Path) -> None:
    """Synthetic sync cells spend 0.4 of the time on generation and 0.6 on training."""
    cells = cells_of(tmp_path, {("sync", "", 0): SYNC, ("areal", "", 4): FAST})
    found = row(speedups(cells, ReportConfig()), k=4)
    assert found["bound"] == pytest.approx((0.4 + 0.6) / 0.6)
    assert found["ratio_of_bound"] == pytest.approx(found["ratio_mean"] * 0.6)
    assert found["overlap"] == pytest.approx(0.5 + 0.9)


def test_seeds_without_partner_second_attempts_and_other_machines_do_not_count(tmp_path: Path) -> None:
    cells = cells_of(tmp_path, {("sync", "", 0): SYNC, ("areal", "", 4): [*FAST, 999.0]})
    late, moved = a_cell(seed=0), a_cell(seed=1)
    paths = dict(cells.paths)
    paths[late] = write_cell(tmp_path, late, trained_tokens_per_sec=1.0, attempts=2)
    paths[moved] = write_cell(tmp_path, moved, trained_tokens_per_sec=1.0, machine={"cpu": "other"})
    found = row(speedups(collect(paths), ReportConfig()), k=4)
    assert found["pairs"] == 1
    assert found["ratio_mean"] == pytest.approx(120 / 90)
    assert found["claim"] == "too few seeds"


def test_an_arm_that_sync_does_not_have_is_compared_with_its_base(tmp_path: Path) -> None:
    def config(cell: Cell, **blocks) -> dict:
        return summary_record(cell)["config"] | {"optim": {"lr": 1e-4}} | blocks

    arms = {"drain": {"rollout": {"update": "drain"}}, "faster": {"optim": {"lr": 1e-3}}}
    sync = a_cell(mode="sync", k=0)
    paths = {sync: write_cell(tmp_path, sync, config=config(sync))}
    for arm, blocks in arms.items():
        cell = a_cell(arm=arm)
        paths[cell] = write_cell(tmp_path, cell, config=config(cell, **blocks))
    frame = speedups(collect(paths), ReportConfig())
    assert row(frame, arm="drain")["baseline"] == "sync-grpo-k0-dec1"
    assert row(frame, arm="faster")["baseline"] == "missing"  # sync learns otherwise


CPU, GPU = {"devices": ["cpu"]}, {"devices": ["cuda:0"]}


@pytest.mark.parametrize(
    ("mode", "train", "rollout", "expected"),
    [
        ("sync", CPU | {"threads": 2}, CPU | {"workers": 3}, Compute(2, "cores")),
        ("lagged", CPU, CPU, Compute(1, "cores")),
        ("async", CPU | {"threads": 2}, CPU, Compute(4, "cores")),
        (
            "areal",
            CPU | {"threads": 2, "workers": 2},
            CPU | {"threads": 3, "workers": 4},
            Compute(16, "cores"),
        ),
        ("sync", GPU, {"devices": ["cuda:1"]}, Compute(1, "GPUs")),
        ("areal", GPU, {"devices": ["cuda:1", "cuda:2"]}, Compute(3, "GPUs")),
        ("areal", GPU, GPU, Compute(1, "GPUs")),
    ],
)
def test_what_a_run_computes_with(mode, train, rollout, expected) -> None:
    assert compute_of(mode, {"train": train, "rollout": rollout}) == expected


def test_cores_and_gpus_do_not_divide(tmp_path: Path) -> None:
    sync, areal = a_cell(mode="sync", k=0), a_cell()
    on_gpu = summary_record(areal)["config"] | {"rollout": GPU, "train": GPU}
    paths = {sync: write_cell(tmp_path, sync), areal: write_cell(tmp_path, areal, config=on_gpu)}
    found = row(speedups(collect(paths), ReportConfig()), k=4)
    assert found["compute"] == "1 GPU"
    assert math.isnan(found["ratio_per_unit_mean"])


def test_throughput_stands_beside_what_areal_published(tmp_path: Path) -> None:
    cells = cells_of(
        tmp_path,
        {
            ("areal", "", 0): [50.0, 60.0, 70.0],
            ("areal", "", 4): [100.0, 120.0, 140.0],
            ("sync", "", 0): SYNC,
        },
    )
    frame = throughput_paper_comparison(cells, ReportConfig())
    assert list(frame["k"]) == list(AREAL_PUBLISHED)
    assert list(frame["published"]) == list(AREAL_PUBLISHED.values())
    assert set(frame["mode"]) == {"areal"}
    assert row(frame, k=4)["ratio_k0_mean"] == pytest.approx(2.0)
    assert row(frame, k=0)["ratio_k0_mean"] == pytest.approx(1.0)
    absent = row(frame, k=16)
    assert (absent["seeds"], absent["k_steps"]) == (0, 32)
    assert math.isnan(absent["ratio_k0_mean"])


def test_without_k0_there_is_no_ratio_and_another_k_has_nothing_published(tmp_path: Path) -> None:
    frame = throughput_paper_comparison(cells_of(tmp_path, {("areal", "", 3): FAST}), ReportConfig())
    assert frame["ratio_k0_mean"].isna().all()
    assert math.isnan(row(frame, k=3)["published"])


@given(st.permutations(range(3)))
def test_pairs_go_by_seed_and_not_by_order(order: list[int]) -> None:
    ours, theirs = ({seed: values[seed] for seed in order} for values in (FAST, SYNC))
    assert paired_ratio(ours, dict(enumerate(SYNC))) == paired_ratio(dict(enumerate(FAST)), theirs)
