"""All tables of a small fixed set of cells, against files that were read and found right.

Rewrite them with UPDATE_GOLDEN=1, and read their diff.
"""

import os
from pathlib import Path

import pytest

from async_rollout.analysis.collect import collect
from async_rollout.analysis.tables.catalog import table_files, write_tables
from async_rollout.config.report import ReportConfig
from async_rollout.records.files import JsonlWriter
from async_rollout.records.states import STATES_FILE, StateRow
from summaries import a_cell, a_plan, cell_directory, summary_record, write_cell

GOLDEN = Path(__file__).parents[1] / "data" / "tables"
REPORT = ReportConfig(pass_threshold={"sort": 0.6}, window=20)
SYNC = [a_cell(mode="sync", k=0, seed=seed) for seed in range(3)]
ON_POLICY = [a_cell(k=0, seed=seed) for seed in range(3)]
STALE = [a_cell(k=4, seed=seed) for seed in range(3)]
LOST, FAILED, TORN = (a_cell(k="inf", seed=seed) for seed in range(3))
NAIVE = [a_cell(k=4, arm="behavior", seed=seed) for seed in range(2)]
LAGGED = [a_cell(mode="lagged", k=k) for k in (0, 4)]


def ended_at(cell, change: float) -> list[dict]:
    """The evaluations of a sound cell, whose last pass rate is changed."""
    *before, last = summary_record(cell)["eval_pass_rate"]
    return [*before, last | {"sampled": last["sampled"] + change}]


def fixed_set(results: Path) -> dict:
    """Three seeds each of sync, K = 0 and K = 4, one of them in its second attempt; an arm with a collapsed
    cell and no sync; at K = inf one cell that is lost, one that failed and one torn; and `lagged`."""
    paths = {}
    for cell, speed in zip(SYNC, (100.0, 110.0, 90.0), strict=True):
        paths[cell] = write_cell(results, cell, trained_tokens_per_sec=speed)
    for cell, speed in zip(ON_POLICY, (80.0, 85.0, 75.0), strict=True):
        paths[cell] = write_cell(results, cell, trained_tokens_per_sec=speed)
    for cell, speed, change in zip(STALE, (150.0, 170.0, 9.0), (-0.2, -0.21, -0.19), strict=True):
        attempts = 2 if speed < 10 else 1
        rates, speeds = ended_at(cell, change), {"trained_tokens_per_sec": speed, "attempts": attempts}
        paths[cell] = write_cell(results, cell, eval_pass_rate=rates, lost_sec=attempts - 1.0, **speeds)
    paths[NAIVE[0]] = write_cell(results, NAIVE[0])
    paths[NAIVE[1]] = write_cell(results, NAIVE[1], status="collapsed", pass_rate_last=0.01)
    for cell in LAGGED:
        paths[cell] = write_cell(results, cell)
    for cell in (LOST, FAILED, TORN):
        paths[cell] = cell_directory(results, cell) / "summary.json"
    log = JsonlWriter(paths[FAILED].with_name(STATES_FILE))
    log.write(StateRow(1.0, "failed", 2, "host", 7, "non_finite", "FloatingPointError: loss is nan"))
    log.close()
    paths[TORN].parent.mkdir(parents=True)
    paths[TORN].write_text('{"schema_version": 1, "conf')
    return paths


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    results = tmp_path_factory.mktemp("results")
    target = GOLDEN if os.environ.get("UPDATE_GOLDEN") else results / "tables"
    paths = fixed_set(results)
    write_tables(collect(paths, {cell: a_plan(cell) for cell in paths}), target, REPORT)
    return target


@pytest.mark.parametrize("name", table_files())
def test_golden_tables(written: Path, name: str) -> None:
    assert (written / name).read_text() == (GOLDEN / name).read_text()


def test_no_other_file_is_kept() -> None:
    assert sorted(path.name for path in GOLDEN.iterdir()) == sorted(table_files())
