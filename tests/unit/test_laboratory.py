"""Final and best pass rates by K and objective, against statistics by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from async_rollout.analysis.collect import collect
from async_rollout.analysis.tables.laboratory import staleness_laboratory, table2_staleness_vs_pass_rate
from async_rollout.analysis.tables.writing import display
from async_rollout.config.report import ReportConfig
from summaries import a_cell, a_plan, write_cell

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
    return staleness_laboratory(collect(paths | {missing: tmp_path / "nothing"}), ReportConfig())


def test_each_measure_has_its_mean_and_interval_over_seeds(tmp_path: Path) -> None:
    frame = laboratory(tmp_path)
    row = frame.iloc[0]
    assert (row["arm"], row["k"], row["k_steps"], row["n"], row["collapsed"]) == ("base", 4, 8, 3, 1)
    runs = [RATES[seed] for seed in RATES]
    for measure, values in {
        "final": [run[-1] for run in runs],
        "best": [max(run) for run in runs],
        "mean_eval": [np.mean(run) for run in runs],
    }.items():
        low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
        found = [row[f"{measure}_{part}"] for part in ("mean", "low", "high")]
        assert found == pytest.approx([np.mean(values), max(low, 0), min(high, 1)])


def test_what_is_missing_has_no_row_and_one_seed_has_no_interval(tmp_path: Path) -> None:
    frame = laboratory(tmp_path)
    assert list(frame["arm"]) == ["base", "behavior"]
    shown = display(frame)
    assert shown.iloc[1]["eval pass, last"] == "0.250"
    assert shown.iloc[0]["eval pass, last"] == "0.600 [0.000, 1.000]"


def table2(tmp_path: Path, finals: dict[tuple[str, int], list[float]]):
    """Of cells with these last pass rates by (arm, K), and one arm of which nothing is there but its plan."""
    paths, plans = {}, {}
    for (arm, k), rates in finals.items():
        for seed, rate in enumerate(rates):
            cell = a_cell(mode="lagged", arm=arm, k=k, seed=seed)
            points = evaluations([0.1, 0.9, rate])
            paths[cell] = write_cell(tmp_path, cell, eval_pass_rate=points, metrics=False)
    for seed in range(3):
        cell = a_cell(mode="lagged", arm="omit", k=8, seed=seed)
        paths[cell], plans[cell] = tmp_path / cell.id / "summary.json", a_plan(cell, minibatches=4)
    cells = collect(paths)
    return table2_staleness_vs_pass_rate(replace(cells, plans=plans), ReportConfig())


def test_table_2_claims_what_paired_seeds_carry(tmp_path: Path) -> None:
    finals = {
        ("", 0): [0.80, 0.60, 0.70],
        ("", 4): [0.50, 0.31, 0.39],  # 0.3 lower in every seed
        ("", 8): [0.90, 0.50, 0.75],
        ("behavior", 4): [0.2, 0.3, 0.1],  # has no K = 0 to compare with
    }
    frame = table2(tmp_path, finals).set_index(["arm", "k"])
    assert frame.loc[("base", 4), "final_mean"] == pytest.approx(0.4)
    assert frame.loc[("base", 4), "best_mean"] == pytest.approx(0.9)
    assert frame.loc[("base", 4), "versus_k0_mean"] == pytest.approx(-0.3)
    low, high = stats.t.interval(0.95, 2, loc=-0.3, scale=stats.sem([-0.30, -0.29, -0.31]))
    assert list(frame.loc[("base", 4), ["versus_k0_low", "versus_k0_high"]]) == pytest.approx([low, high])
    claims = frame["claim"].to_dict()
    assert claims[("base", 4)] == "lower"
    assert claims[("base", 8)] == "no difference shown"
    assert claims[("behavior", 4)] == "too few seeds"
    assert frame["pairs"].to_dict()[("behavior", 4)] == 0
    assert isinstance(claims[("base", 0)], float)  # nothing to claim of K = 0 against itself


def test_table_2_shows_what_is_missing_with_its_objective_and_minibatches(tmp_path: Path) -> None:
    frame = table2(tmp_path, {("", 0): [0.8]}).set_index(["arm", "k"])
    row = frame.loc[("omit", 8)]
    assert (row["objective"], row["minibatches"], row["k_steps"]) == ("omit", 4, 32)
    assert (row["seeds"], row["n"]) == (3, 0)
    assert np.isnan(row["final_mean"])
