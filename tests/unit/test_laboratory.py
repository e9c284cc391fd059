"""Final and best pass rates by K and objective, against statistics by hand."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from async_rollout.analysis.collect import collect
from async_rollout.analysis.laboratory import display, staleness_laboratory
from summaries import a_cell, write_cell

RATES = {0: [0.1, 0.7, 0.6], 1: [0.1, 0.9, 0.9], 2: [0.2, 0.5, 0.3]}


def evaluations(rates: list[float]) -> list[dict]:
    """Out of order, as no file promises an order."""
    points = [
        {"version": 10 * i, "updates": 10 * i, "seconds": 1.0, "sampled": rate, "greedy": 0.0, "n": 9}
        for i, rate in enumerate(rates)
    ]
    return points[::-1]


def laboratory(tmp_path: Path):
    paths = {}
    for seed, rates in RATES.items():
        cell = a_cell(mode="lagged", seed=seed)
        status = "collapsed" if seed == 2 else "done"
        paths[cell] = write_cell(tmp_path, cell, eval_pass_rate=evaluations(rates), status=status)
    other = a_cell(mode="lagged", arm="behavior", k=16)
    paths[other] = write_cell(tmp_path, other, eval_pass_rate=evaluations([0.25]))
    missing = a_cell(mode="lagged", arm="omit")
    return staleness_laboratory(collect(paths | {missing: tmp_path / "nothing"}))


def test_each_measure_has_its_mean_and_interval_over_seeds(tmp_path: Path) -> None:
    frame = laboratory(tmp_path)
    row = frame.iloc[0]
    assert (row["arm"], row["k"], row["k_steps"], row["n"], row["collapsed"]) == ("base", 4, 8, 3, 1)
    runs = [RATES[seed] for seed in RATES]
    for measure, values in {
        "final": [run[-1] for run in runs],
        "best": [max(run) for run in runs],
        "mean": [np.mean(run) for run in runs],
    }.items():
        low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
        found = [row[f"{measure}_{part}"] for part in ("mean", "low", "high")]
        assert found == pytest.approx([np.mean(values), low, high])


def test_what_is_missing_has_no_row_and_one_seed_has_no_interval(tmp_path: Path) -> None:
    frame = laboratory(tmp_path)
    assert list(frame["arm"]) == ["base", "behavior"]
    shown = display(frame)
    assert shown.iloc[1]["pass rate, last version"] == "0.250"
    assert shown.iloc[0]["pass rate, last version"].startswith("0.600 [-0.145, 1.345]")
