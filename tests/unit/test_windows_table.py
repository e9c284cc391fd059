"""Windows of updates: pooled within a cell, averaged over cells; and the arrays that they come from."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.analysis.collect import collect
from async_rollout.analysis.commits import Commits, read_commits
from async_rollout.analysis.tables.windows import window_of, windowed_accuracy
from async_rollout.config.report import ReportConfig
from async_rollout.records.cells import read_metrics
from summaries import a_cell, write_cell

counts = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30)


@given(counts, st.integers(1, 12))
def test_a_window_pools_its_commits(judged: list[tuple[int, int]], window: int) -> None:
    correct, incorrect = (np.array([pair[i] for pair in judged], dtype=float) for i in (0, 1))
    found = Commits(correct, incorrect, correct, correct).pass_rates(window)
    expected = []
    for start in range(0, len(judged), window):
        part = judged[start : start + window]
        right, all_ = sum(c for c, _ in part), sum(c + i for c, i in part)
        expected.append(right / all_ if all_ else math.nan)
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("updates", "asked", "expected"), [(60, None, 6), (61, None, 7), (3, None, 1), (60, 25, 25)]
)
def test_a_window_is_a_tenth_of_the_run_unless_told(updates, asked, expected) -> None:
    assert window_of(updates, asked) == expected


def test_windows_are_averaged_over_the_seeds_that_got_so_far(tmp_path: Path) -> None:
    long, short, lost = (a_cell(seed=seed) for seed in range(3))
    paths = {long: write_cell(tmp_path, long, updates=50), short: write_cell(tmp_path, short, updates=25)}
    frame = windowed_accuracy(collect(paths | {lost: tmp_path / "none.json"}), ReportConfig(window=20))
    assert list(zip(frame["window_first"], frame["window_last"], strict=True)) == [
        (1, 20),
        (21, 40),
        (41, 50),
    ]
    assert list(frame["n"]) == [2, 2, 1]
    assert set(frame["seeds"]) == {3}
    rates = []
    for path, stop in ((paths[long], 40), (paths[short], 25)):
        rows = read_metrics(path.parent)[20:stop]
        rates.append(sum(r.correct for r in rows) / sum(r.correct + r.incorrect for r in rows))
    assert frame["rate_mean"][1] == pytest.approx(np.mean(rates))
    assert frame["rate_std"][1] == pytest.approx(np.std(rates, ddof=1))


def test_what_is_not_finite_is_named(tmp_path: Path) -> None:
    cell = a_cell()
    log = write_cell(tmp_path, cell).with_name("metrics.jsonl")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    rows[2]["step_sec"] = math.nan
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=r"metrics\.jsonl:3: not JSON \(NaN"):
        read_commits(log.parent)
