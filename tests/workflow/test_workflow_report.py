"""`snakemake --report` holds the same tables and figures; what a missing summary makes again."""

import json
import re
import shutil
import zipfile
from html import unescape
from pathlib import Path

import pytest

import async_rollout
from async_rollout.analysis.figures.catalog import FIGURES
from async_rollout.analysis.manifest import read_manifest
from async_rollout.analysis.tables.catalog import TABLES

OURS = ("--configfile", "sweep.yaml")
CELL = "areal-grpo-k4-dec1-s0"
SORT = "results/tried/sort"


@pytest.fixture(scope="module")
def finished(make_checkout):
    checkout = make_checkout()
    checkout.snakemake(*OURS)
    checkout.trained()
    return checkout


def variable(page: str, name: str) -> dict:
    """A value that Snakemake wrote into its report."""
    start = re.search(rf'<script id="{name}">\s*var {name} = ', page).end()
    return json.JSONDecoder().raw_decode(page[start:])[0]


def words(markup: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", "", markup)).split())


def check(page: str) -> None:
    """Categories, labels and captions of every table and figure; nothing is fetched from anywhere."""
    results, categories = variable(page, "results"), variable(page, "categories")
    figures = {f"{SORT}/figures/{name}.png": entry for name, entry in FIGURES.items()}
    tables = {f"{SORT}/tables/{name}.csv": entry for name, entry in TABLES.items()}
    assert results.keys() == {*figures, *tables, "results/tried/report.html"}
    for path, entry in (figures | tables).items():
        kind = "figure" if path in figures else "table"
        assert results[path]["labels"] == {"dataset": "sort", kind: entry.title}
        assert words(results[path]["caption"]).startswith(" ".join(entry.caption.split())), path
        assert any(path in group for group in categories[f"{kind.title()}s"].values())
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)


def test_html_and_zip_hold_what_the_report_holds(finished):
    finished.snakemake(*OURS, "--report", "r.html")
    check((finished.directory / "r.html").read_text())
    finished.snakemake(*OURS, "--report", "r.zip")
    with zipfile.ZipFile(finished.directory / "r.zip") as archive:
        check(archive.read("r/report.html").decode())
        held = {Path(name).name for name in archive.namelist()}
        assert {f"{name}.png" for name in FIGURES} | {f"{name}.csv" for name in TABLES} <= held
    page = (finished.directory / "results/tried/report.html").read_text()
    for name in [*TABLES.keys() - {"checks"}, *FIGURES]:
        assert f'id="sort-{name}"' in page


def test_the_newest_experiment_is_found_and_all_of_it_listed(finished):
    results = finished.directory / "results"
    assert (results / "latest").readlink() == Path("tried")
    paths = {file.path for file in read_manifest(results / "latest")}
    assert {f"sort/figures/{name}.svg" for name in FIGURES} <= paths
    assert {f"sort/tables/{name}.csv" for name in TABLES} <= paths


def test_another_style_redraws_and_runs_nothing(finished, tmp_path, monkeypatch):
    shutil.copytree(Path(async_rollout.__file__).parent, tmp_path / "async_rollout")
    with (tmp_path / "async_rollout/analysis/figures/style.py").open("a") as file:
        file.write("COLORS = COLORS[::-1]\n")
    there = finished.environment() | {"PYTHONPATH": f"{tmp_path}:{finished.environment()['PYTHONPATH']}"}
    monkeypatch.setattr(finished, "environment", lambda: there)
    assert planned_jobs(finished) == {"figure": len(FIGURES), "report": 1, "all": 1}


def test_a_removed_summary_redoes_its_cell_and_what_hangs_on_it(finished):
    summary = f"{SORT}/runs/{CELL}/summary.json"
    (finished.directory / summary).unlink()
    hangs = {"tables": 1, "figure": len(FIGURES), "report": 1, "all": 1}
    assert planned_jobs(finished) == {"run": 1} | hangs
    assert finished.planned(*OURS) == {CELL}
    finished.snakemake(*OURS, "--", summary)
    assert finished.trained() == [CELL]
    with (finished.directory / summary).open("a") as file:
        file.write("\n")  # a real run measures anew; with the same bytes nothing would hang on it
    assert planned_jobs(finished) == hangs


def planned_jobs(checkout) -> dict[str, int]:
    """Jobs that a dry run would do, by rule."""
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", checkout.snakemake("-n", *OURS), flags=re.MULTILINE))
    del jobs["total"]
    return {rule: int(count) for rule, count in jobs.items()}
