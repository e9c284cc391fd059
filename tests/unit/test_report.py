"""The report: one offline file, nothing hostile in it comes alive, every row leads to its cells."""

import re
import subprocess
import sys
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from async_rollout.analysis.collect import Cells, collect
from async_rollout.analysis.figures.catalog import FIGURES, write_figure
from async_rollout.analysis.index import write_index
from async_rollout.analysis.report import write_report
from async_rollout.analysis.tables.catalog import TABLES, write_tables
from async_rollout.config.report import ReportConfig
from drawn import draw_quickly
from summaries import a_cell, grid, write_cell, write_grid

HOSTILE = "<script>alert(1)</script>\"'&{{ 7 * 7 }}--><img src=x onerror=alert(1)>"


class Page(HTMLParser):
    """What a browser would make of the page."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))

    def links(self) -> list[str]:
        return [a.get("href") or a.get("xlink:href") for tag, a in self.tags if tag == "a"]


def draw(cells: Cells, directory: Path) -> None:
    for name in FIGURES:
        write_figure(name, cells, directory)


def draw_nothing(cells: Cells, directory: Path) -> None:
    pass


def report(results: Path, paths: dict, figures: Callable[[Cells, Path], None] = draw_quickly) -> str:
    cells = collect(paths)
    for dataset in cells.datasets:
        part = cells.of_dataset(dataset)
        write_tables(part, results / part.slug / "tables", ReportConfig())
        figures(part, results / part.slug / "figures")
    write_report(cells, results / "report.html", ReportConfig(), experiment="test", command="make demo")
    return (results / "report.html").read_text()


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[Path, str]:
    results = tmp_path_factory.mktemp("results")
    return results, report(results, write_grid(results, grid()), draw)


def test_every_link_leads_to_something(demo) -> None:
    results, text = demo
    page = Page(text)
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    for href in page.links():
        if href.startswith("#"):
            assert href[1:] in ids
        else:
            assert (results / unquote(href)).exists(), href
    for cell in grid():
        # its row, its seed's group in `mode_aggregate`, and points in figures
        assert page.links().count(f"sort/runs/{cell.id}/") >= 2 + len(FIGURES)


def test_the_file_stands_alone(demo) -> None:
    _, text = demo
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "object", "embed", "base", "form"}
    for tag, attrs in page.tags:
        for name, value in attrs.items():
            if name in ("src", "href", "xlink:href", "action", "srcset"):
                assert not re.match(r"(?!data:image/png)[a-z]+:|//", value), (tag, name, value)
    assert not re.search(r"url\(\s*['\"]?(?!#)", text)
    assert "@import" not in text
    (policy,) = [a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")


def test_ids_are_unique(demo) -> None:
    ids = [attrs["id"] for _, attrs in Page(demo[1]).tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_all_parts_are_there(demo) -> None:
    text = demo[1]
    for part in (
        'id="checks"',
        'id="config"',
        "make demo",
        "torch",
        "test CPU",
        "light-dark(",
        'id="method"',
    ):
        assert part in text
    assert text.index('id="checks"') < text.index('id="sort"')
    assert "no language model" not in text


def test_every_table_and_figure_of_the_catalogs_is_in_the_report(demo) -> None:
    ids = [attrs["id"] for _, attrs in Page(demo[1]).tags if "id" in attrs]
    for name in [*TABLES, *FIGURES]:
        assert name == "checks" or ids.count(f"sort-{name}") == 1, name
    drawn = demo[1].count("<svg") + demo[1].count('<img src="data:image/png;base64,')
    assert drawn == len(FIGURES)


def test_a_large_figure_is_shown_as_its_png(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("async_rollout.analysis.report_figures.INLINE", 1)
    text = report(tmp_path, write_grid(tmp_path, grid(1)))
    assert "<svg" not in text
    assert text.count('<img src="data:image/png;base64,') == len(FIGURES)


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    a, b = (report(tmp_path / side, write_grid(tmp_path / side, grid(1))) for side in "ab")
    assert a == b


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    cell = a_cell(dataset=f"jsonl:{HOSTILE}", arm=HOSTILE.replace("/", "|"))
    paths = {cell: tmp_path / "jsonl" / "runs" / "cell" / "summary.json"}
    written = write_cell(
        tmp_path,
        cell,
        software={HOSTILE: HOSTILE},
        machine={"cpu": HOSTILE},
        objective=HOSTILE,
        config={"model": {"id": HOSTILE, HOSTILE: [HOSTILE]}},
        backend=HOSTILE,
    )
    text = report(tmp_path, paths | {cell: written}, draw)
    page = Page(text)
    assert "<script>alert" not in text
    assert not any(tag == "img" or "onerror" in attrs for tag, attrs in page.tags)
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert "{{ 7 * 7 }}" in text  # the braces were not evaluated
    assert "&lt;script&gt;alert(1)" in text


def test_unreal_backends_head_the_report(tmp_path: Path) -> None:
    cell = a_cell()
    text = report(tmp_path, {cell: write_cell(tmp_path, cell, backend="dummy")}, draw_nothing)
    banner = text.index('class="banner"')
    assert banner < text.index('id="checks"')
    assert "1 of 1 finished cells used the backend “dummy”" in text


def test_missing_cells_and_undrawn_figures_are_said(tmp_path: Path) -> None:
    text = report(
        tmp_path, {a_cell(): tmp_path / "sort" / "runs" / "x" / "summary.json"}, figures=draw_nothing
    )
    assert "0 of 1 cells finished" in text
    assert "missing" in text
    assert '<tr class="bad">' in text
    for name in FIGURES:
        assert f"figure {name} of sort was not drawn" in text
    assert str(tmp_path) not in text


def test_an_empty_sweep_gives_a_report_that_says_so(tmp_path: Path) -> None:
    assert "the sweep has no cells" in report(tmp_path, {})


def test_several_datasets_have_a_section_each(tmp_path: Path) -> None:
    paths = {}
    for dataset in ("sort", "jsonl:tests/words.jsonl"):
        cell = a_cell(dataset=dataset)
        paths[cell] = write_cell(tmp_path, cell)
    text = report(tmp_path, paths)
    assert '<h2 id="sort">sort</h2>' in text
    assert '<h2 id="words">jsonl:tests/words.jsonl</h2>' in text
    assert (tmp_path / "words" / "figures" / "fig_staleness_violin.svg").exists()


def test_differences_between_configs_are_listed(tmp_path: Path) -> None:
    paths = {}
    for seed, lr in ((0, 1e-4), (1, 2e-4)):
        cell = a_cell(seed=seed)
        paths[cell] = write_cell(
            tmp_path, cell, config={"seed": seed, "optim": {"lr": lr, "betas": [0.9, 0.99]}}
        )
    text = report(tmp_path, paths, draw_nothing)
    assert "0.0001 (1 cell); 0.0002 (1 cell)" in text
    assert "optim.betas" in text


@pytest.mark.long
def test_two_thousand_cells_take_less_than_half_a_minute(tmp_path: Path) -> None:
    paths = write_grid(tmp_path, grid(87, ks=(0, 1, 2, 4, 8, 16, "inf")))
    assert len(paths) > 2000
    draw_quickly(collect(paths), tmp_path / "sort" / "figures")
    began = time.process_time()
    cells = collect(paths)
    write_report(cells, tmp_path / "report.html", ReportConfig(), experiment="test", command="make demo")
    write_index(cells, tmp_path, experiment="test", command="make demo")
    assert time.process_time() - began < 30
    assert (tmp_path / "report.html").stat().st_size < 10e6


def test_analysis_imports_no_torch() -> None:
    code = (
        "import sys, importlib, pkgutil, async_rollout.analysis as a\n"
        "for m in pkgutil.walk_packages(a.__path__, a.__name__ + '.'): importlib.import_module(m.name)\n"
        "assert 'async_rollout.analysis.figures.throughput' in sys.modules\n"
        "slow = {'torch', 'transformers', 'seaborn', 'matplotlib.pyplot', 'scipy.stats'}\n"
        "assert not slow & sys.modules.keys(), slow & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
