"""Every table of the catalog can be built, from nothing too; the workflow has the catalog's captions."""

import os
import time
from pathlib import Path

import pytest

from async_rollout.analysis.collect import collect
from async_rollout.analysis.columns import COLUMNS
from async_rollout.analysis.groups import PARTS
from async_rollout.analysis.tables.catalog import TABLES, build_table, table_files, write_tables
from async_rollout.analysis.tables.writing import display
from async_rollout.config.report import ReportConfig
from summaries import a_cell, grid, write_grid

CAPTIONS = Path(__file__).parents[2] / "workflow" / "report"
ASKED_FOR = {
    "checks",
    "summary_headline",
    "mode_aggregate",
    "table2_staleness_vs_pass_rate",
    "windowed_accuracy",
    "speedups",
    "throughput_paper_comparison",
    "failures",
    "analysis_aggregated",
}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    cells = [*grid(3, ks=(0, 4, "inf")), *(a_cell(mode="lagged", seed=seed) for seed in range(3))]
    return collect(write_grid(tmp_path_factory.mktemp("results"), cells))


def test_the_tables_that_were_asked_for_are_there() -> None:
    assert TABLES.keys() >= ASKED_FOR


@pytest.mark.parametrize("name", TABLES)
def test_every_number_of_a_table_is_shown(name: str, sweep) -> None:
    """What `display` leaves out is only what it folds into one text: deviation and ends of intervals."""
    frame = build_table(name, sweep, ReportConfig())
    assert len(frame) or name in ("checks", "failures")  # all is well in this sweep
    folded = {f"{stem}_{part}" for stem in COLUMNS for part in PARTS}
    assert {column for column in frame if column not in COLUMNS} <= folded
    shown = display(frame)
    assert len(shown) == len(frame)
    assert not shown.map(lambda text: "nan" in text.lower()).any(axis=None)


@pytest.mark.parametrize("name", TABLES)
def test_a_sweep_of_nothing_gives_a_head(name: str, tmp_path: Path) -> None:
    for cells in (collect({}), collect({a_cell(): tmp_path / "summary.json"})):
        assert list(build_table(name, cells, ReportConfig()).columns)


@pytest.mark.parametrize("name", TABLES)
def test_the_workflow_has_the_catalogs_caption(name: str) -> None:
    text = (CAPTIONS / f"{name}.rst").read_text(encoding="utf-8")
    assert text.split() == TABLES[name].caption.split()


def test_all_files_are_written_and_no_other(sweep, tmp_path: Path) -> None:
    write_tables(sweep, tmp_path, ReportConfig())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(table_files())


@pytest.mark.long
def test_two_thousand_cells_take_seconds(tmp_path: Path, monkeypatch) -> None:
    """Seconds of this process alone, so that a busy machine makes no difference."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    places = [("sync", 0), *((mode, k) for mode in ("areal", "lagged") for k in (0, 1, 2, 4, 8, 16, "inf"))]
    algorithms = ("grpo", "sao", "grpo_dis", "single_dis")
    cells = [
        a_cell(mode=mode, k=k, algorithm=algorithm, arm=arm, seed=seed)
        for mode, k in places
        for algorithm in algorithms
        for arm in ("", "behavior", "clamp")
        for seed in range(12)
    ]
    assert len(cells) > 2000
    paths = write_grid(tmp_path, cells)
    begun = time.process_time()
    write_tables(collect(paths), tmp_path / "tables", ReportConfig())
    assert time.process_time() - begun < 30
