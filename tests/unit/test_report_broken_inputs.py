"""Old, broken and thin results: each gives a report, and the report says so where a reader begins."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from async_rollout.analysis.collect import Cells, collect
from async_rollout.analysis.figures.catalog import write_figure
from async_rollout.analysis.index import write_index
from async_rollout.analysis.report import write_report
from async_rollout.analysis.tables.catalog import write_tables
from async_rollout.config.report import ReportConfig
from async_rollout.records.states import StateLog
from drawn import draw_quickly
from summaries import a_cell, grid, summary_record, write_cell, write_grid

CLAIMS = re.compile(r"n = [3-9] pairs")


def page(results: Path, paths: dict, draw: Callable = draw_quickly) -> str:
    """The report, and all that is made before and after it."""
    cells = collect(paths)
    for dataset in cells.datasets:
        part = cells.of_dataset(dataset)
        write_tables(part, results / part.slug / "tables", ReportConfig())
        draw(part, results / part.slug / "figures")
    names = {"experiment": "tried", "command": "make tried"}
    write_report(cells, results / "report.html", ReportConfig(), **names)
    write_index(cells, results, **names)
    return (results / "report.html").read_text()


def checks(text: str) -> str:
    return text[text.index('id="checks"') : text.index('id="sort"')]


def test_a_summary_of_another_schema_version(tmp_path: Path) -> None:
    paths = write_grid(tmp_path, grid(1))
    old = next(iter(paths))
    record = summary_record(old) | {"schema_version": 0}
    paths[old].write_text(json.dumps(record))
    text = page(tmp_path, paths)
    assert "7 of 8 cells finished" in text
    assert "schema version 0, this program reads" in checks(text)
    assert "1 of 8 cells: 1 damaged." in text


@pytest.mark.parametrize("length", [0, 1, 200])
def test_a_truncated_summary(tmp_path: Path, length: int) -> None:
    paths = write_grid(tmp_path, grid(1))
    cut = list(paths)[-1]
    paths[cut].write_text(paths[cut].read_text()[:length])
    text = page(tmp_path, paths)
    assert re.search("the file is empty|not strict JSON", checks(text))
    assert cut.id in checks(text)
    assert f'<tr class="bad"><td><a href="sort/runs/{cut.id}/">' in text


def draw_really(*names: str) -> Callable:
    """Draws these as they are, the others quickly."""

    def draw(cells: Cells, directory: Path) -> None:
        draw_quickly(cells, directory)
        for name in names:
            write_figure(name, cells, directory)

    return draw


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: "{torn}\n" + text, "metrics.jsonl:1: not JSON"),
        (lambda text: re.sub(r'"kl": [^,]*, ', "", text), "not a metrics row of this version (fields: kl)"),
        (lambda text: re.sub(r'"reward_mean": [^,]*', '"reward_mean": NaN', text), "NaN is not a number"),
    ],
)
def test_a_damaged_or_old_metrics_file(tmp_path: Path, damage: Callable, said: str) -> None:
    paths = write_grid(tmp_path, grid(1))
    for path in list(paths.values())[:2]:
        metrics = path.parent / "metrics.jsonl"
        metrics.write_text(damage(metrics.read_text()))
    text = page(tmp_path, paths, draw_really("fig_reward_curves", "updates_vs_mode"))
    assert said in checks(text)
    assert "8 of 8 cells finished" in text
    drawn = (tmp_path / "sort/figures/updates_vs_mode.csv").read_text()
    assert [cell.id in drawn for cell in paths] == [False, False, *[True] * 6]


def test_damaged_traces(tmp_path: Path) -> None:
    paths = write_grid(tmp_path, grid(1, ks=(4,)))
    damaged = ["", '{"traceEvents": [{"ph"', "[]", '{"traceEvents": [{"ph": "X"}]}', "\xff"]
    for path, trace in zip(paths.values(), damaged, strict=True):
        (path.parent / "trace.json").write_text(trace, encoding="latin-1")
    text = page(tmp_path, paths, draw_really("timeline", "fig_overview_poster"))
    assert "5 of 5 cells finished" in text
    assert (tmp_path / "sort/figures/timeline.csv").read_text() == "cell\n"


def test_a_cell_that_collapsed(tmp_path: Path) -> None:
    paths = write_grid(tmp_path, grid(1))
    cell = list(paths)[-1]
    write_cell(tmp_path, cell, status="collapsed")
    text = page(tmp_path, paths)
    assert "the policy collapsed" in checks(text)
    assert "1 of 8 cells: 1 collapsed." in text


def test_a_cell_that_failed(tmp_path: Path) -> None:
    paths = write_grid(tmp_path, grid(1))
    cell = list(paths)[-1]
    paths[cell].unlink()
    StateLog(paths[cell].parent, 1).enter("failed", "non_finite", "the loss is NaN at version 7 <b>")
    text = page(tmp_path, paths)
    assert cell.id in checks(text)
    assert "non_finite" in text
    assert "the loss is NaN at version 7 &lt;b&gt;" in text
    assert "1 of 8 cells: 1 failed." in text


def test_no_cell_is_done(tmp_path: Path) -> None:
    paths = {c: tmp_path / "sort" / "runs" / c.id / "summary.json" for c in grid(3)}
    text = page(tmp_path, paths)
    assert "no cell has finished" in checks(text)
    assert "No cell has finished, so there is nothing to say yet." in text
    assert not CLAIMS.search(text)
    assert '<a href="sort/runs/' not in text


def test_a_sweep_without_cells(tmp_path: Path) -> None:
    assert "the sweep has no cells" in page(tmp_path, {})


def test_one_seed(tmp_path: Path) -> None:
    text = page(tmp_path, write_grid(tmp_path, grid(1)))
    assert "n = 1: a claim needs 3 seeds" in checks(text)
    assert "in 1 pair of seeds; fewer than 3 pairs support no claim" in text
    assert not CLAIMS.search(text)


@pytest.mark.parametrize("mode", ["sync", "areal", "lagged"])
def test_one_mode(tmp_path: Path, mode: str) -> None:
    axes = [{"k": 0}] if mode == "sync" else [{"k": 0}, {"k": 4}]
    cells = [a_cell(mode=mode, seed=seed, **place) for place in axes for seed in range(3)]
    text = page(tmp_path, write_grid(tmp_path, cells))
    assert "times as many tokens" not in text
    wanted = (
        "the sweep has no sync cell of this algorithm and arm"
        if mode == "areal"
        else "No finished areal cell has K = 4"
    )
    assert wanted in text


def test_sentences_change_when_the_data_does(tmp_path: Path) -> None:
    paths = write_grid(tmp_path, grid(3))
    before = page(tmp_path, paths)
    for cell in paths:
        if cell.mode == "areal" and cell.k == 4:
            write_cell(tmp_path, cell, trained_tokens_per_sec=1.0)
    after = page(tmp_path, paths)
    ratio = re.compile(r"trained (\d+\.\d+) times as many")
    assert all(float(x) > 1 for x in ratio.findall(before))
    assert all(float(x) < 1 for x in ratio.findall(after))
    assert len(ratio.findall(after)) == 3
