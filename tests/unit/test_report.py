"""The report: one offline file, nothing hostile in it comes alive, every row leads to its cell."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from async_rollout.analysis.collect import collect
from async_rollout.analysis.figures.catalog import FIGURES, write_figure
from async_rollout.analysis.report import write_report
from async_rollout.analysis.tables import write_tables
from async_rollout.config.report import ReportConfig
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


def report(results: Path, paths: dict, figures: bool = True) -> str:
    cells = collect(paths)
    for dataset in cells.datasets:
        part = cells.of_dataset(dataset)
        write_tables(part, results / part.slug / "tables", ReportConfig())
        for name in FIGURES if figures else ():
            write_figure(name, part, results / part.slug / "figures")
    write_report(cells, results / "report.html", ReportConfig(), experiment="test", command="make demo")
    return (results / "report.html").read_text()


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[Path, str]:
    results = tmp_path_factory.mktemp("results")
    return results, report(results, write_grid(results, grid()))


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
        # headline row, and at least one point in each figure and in each table of points
        assert page.links().count(f"sort/runs/{cell.id}/") >= 1 + 2 * len(FIGURES)


def test_the_file_stands_alone(demo) -> None:
    _, text = demo
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "img", "object", "embed", "base", "form"}
    for tag, attrs in page.tags:
        for name, value in attrs.items():
            if name in ("src", "href", "xlink:href", "action", "srcset"):
                assert not re.match(r"[a-z]+:|//", value), (tag, name, value)
    assert not re.search(r"url\(\s*['\"]?(?!#)", text)
    assert "@import" not in text
    (policy,) = [a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")


def test_ids_are_unique_across_figures(demo) -> None:
    ids = [
        attrs["id"] for tag, attrs in Page(demo[1]).tags if "id" in attrs and tag in ("svg", "g", "h2", "h3")
    ]
    assert len(ids) == len(set(ids))


def test_all_parts_are_there(demo) -> None:
    text = demo[1]
    for part in (
        'id="checks"',
        "summary_headline",
        "mode_aggregate",
        'id="config"',
        "make demo",
        "torch",
        "test CPU",
        "prefers-color-scheme: dark",
        *FIGURES,
    ):
        assert part in text
    assert text.count("<svg") == len(FIGURES)
    assert "no language model" not in text


def test_the_same_records_give_the_same_bytes(tmp_path: Path, demo) -> None:
    again = report(tmp_path, write_grid(tmp_path, grid()))
    assert again == demo[1]


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
    text = report(tmp_path, paths | {cell: written})
    page = Page(text)
    assert "<script>alert" not in text
    assert not any(tag == "img" or "onerror" in attrs for tag, attrs in page.tags)
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert "49" not in re.findall(r"jsonl:.{0,200}", text)[0]  # the braces were not evaluated
    assert "&lt;script&gt;alert(1)" in text


def test_unreal_backends_head_the_report(tmp_path: Path) -> None:
    cell = a_cell()
    text = report(tmp_path, {cell: write_cell(tmp_path, cell, backend="dummy")}, figures=False)
    banner = text.index('class="banner"')
    assert banner < text.index('id="checks"')
    assert "1 of 1 finished cells used the backend “dummy”" in text


def test_missing_cells_and_undrawn_figures_are_said(tmp_path: Path) -> None:
    text = report(tmp_path, {a_cell(): tmp_path / "sort" / "runs" / "x" / "summary.json"}, figures=False)
    assert "0 of 1 cells finished" in text
    assert "missing: no summary.json" in text
    assert '<tr class="missing">' in text
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
    text = report(tmp_path, paths, figures=False)
    assert "0.0001 (1 cells); 0.0002 (1 cells)" in text
    assert "optim.betas" in text


def test_analysis_imports_no_torch() -> None:
    code = (
        "import sys, importlib, pkgutil, async_rollout.analysis as a\n"
        "for m in pkgutil.walk_packages(a.__path__, a.__name__ + '.'): importlib.import_module(m.name)\n"
        "assert 'async_rollout.analysis.figures.throughput' in sys.modules\n"
        "slow = {'torch', 'transformers', 'seaborn', 'matplotlib.pyplot', 'scipy.stats'}\n"
        "assert not slow & sys.modules.keys(), slow & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
