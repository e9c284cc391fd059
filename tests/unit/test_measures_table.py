"""Every measure with its statistics, against the summaries by other means; the json is strict."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from async_rollout.analysis.collect import collect
from async_rollout.analysis.tables.measures import DERIVED, FIELDS, SPEEDS, analysis_aggregated
from async_rollout.analysis.tables.writing import write_records
from async_rollout.config.report import ReportConfig
from summaries import a_cell, write_cell

CHANGES = [
    {"reward_mean": 0.2, "kl": 0.01, "updates_per_sec": 3.0, "ess_ratio": 1.0},
    {"reward_mean": 0.5, "kl": 0.03, "updates_per_sec": 5.0, "ess_ratio": 0.4},
    {"reward_mean": 0.9, "kl": 0.02, "updates_per_sec": 1.0, "ess_ratio": 1.0, "attempts": 2},
]


@pytest.fixture
def frame(tmp_path: Path):
    cells = [a_cell(seed=seed) for seed in range(3)]
    lost = a_cell(k="inf")
    paths = {c: write_cell(tmp_path, c, **changes) for c, changes in zip(cells, CHANGES, strict=True)}
    return analysis_aggregated(collect(paths | {lost: tmp_path / "none.json"}), ReportConfig())


def test_each_measure_has_its_statistics(frame) -> None:
    found = frame[frame["k"] == 4].set_index("measure")
    assert list(found.index) == [*FIELDS, *DERIVED, *SPEEDS]
    values = [changes["reward_mean"] for changes in CHANGES]
    low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    row = found.loc["reward_mean"]
    expected = [3, np.mean(values), np.std(values, ddof=1), low, high, min(values), max(values)]
    found = [row[part] for part in ("n", "mean", "std", "low", "high", "boot_low", "boot_high")]
    assert found == pytest.approx(expected)


def test_speeds_leave_out_second_attempts_and_rates_stay_rates(frame) -> None:
    found = frame[frame["k"] == 4].set_index("measure")
    assert (found.loc["updates_per_sec", "n"], found.loc["updates_per_sec", "mean"]) == (2, 4.0)
    assert found.loc["kl", "n"] == 3
    assert found.loc["ess_ratio", "high"] == 1.0
    assert found.loc["value_loss", "n"] == 0  # there was no critic


def test_what_is_missing_has_its_rows(frame) -> None:
    lost = frame[frame["k"] == "inf"]
    assert len(lost) == len(FIELDS) + len(DERIVED) + len(SPEEDS)
    assert set(lost["n"]) == {0}
    assert lost["mean"].isna().all()


def test_the_json_holds_the_rows_and_null_for_what_is_not_known(frame, tmp_path: Path) -> None:
    write_records(frame, tmp_path / "all.json")
    text = (tmp_path / "all.json").read_text()
    records = json.loads(text, parse_constant=pytest.fail)
    assert len(records) == len(frame)
    assert {record["k"] for record in records} == {4, "inf"}
    assert records[-1]["mean"] is None
    assert next(r["mean"] for r in records if r["measure"] == "reward_mean") == pytest.approx(1.6 / 3)
