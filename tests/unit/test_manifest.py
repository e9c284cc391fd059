"""Manifests and indexes: every table and figure is listed, with its checksum, and a change is noticed."""

import hashlib
import json
import os
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from async_rollout.analysis.collect import collect
from async_rollout.analysis.figures.catalog import FIGURES
from async_rollout.analysis.index import point_latest, write_index
from async_rollout.analysis.manifest import ManifestError, check_files, read_manifest
from async_rollout.analysis.tables.catalog import TABLES, table_files, write_tables
from async_rollout.config.report import ReportConfig
from drawn import draw_quickly
from summaries import a_cell, grid, write_cell, write_grid


def analyse(experiment: Path, paths: dict) -> list:
    """Tables, figures, a page and the lists; what the experiment's manifest says."""
    cells = collect(paths)
    for dataset in cells.datasets:
        part = cells.of_dataset(dataset)
        write_tables(part, experiment / part.slug / "tables", ReportConfig())
        draw_quickly(part, experiment / part.slug / "figures")
    (experiment / "report.html").write_text("a page")
    write_index(cells, experiment, experiment="tried", command="snakemake")
    return read_manifest(experiment)


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    directory = tmp_path / "tried"
    paths = write_grid(directory, grid(1))
    words = a_cell(dataset="jsonl:a/words.jsonl")
    analyse(directory, paths | {words: write_cell(directory, words)})
    return directory


@pytest.mark.parametrize("dataset", ["sort", "words"])
def test_every_figure_and_table_of_the_catalogs_is_listed(experiment: Path, dataset: str) -> None:
    on_top = {file.path: file for file in read_manifest(experiment)}
    below = {file.path: file for file in read_manifest(experiment / dataset)}
    for name, entry in FIGURES.items():
        for ending, kind in (("png", "figure"), ("svg", "figure"), ("csv", "points")):
            file = below[f"figures/{name}.{ending}"]
            assert (file.kind, file.caption) == (kind, entry.caption)
            assert on_top[f"{dataset}/{file.path}"].sha256 == file.sha256
    for name in table_files():
        file = below[f"tables/{name}"]
        assert (file.kind, file.caption) == ("table", TABLES[name.partition(".")[0]].caption)
        assert on_top[f"{dataset}/{file.path}"].sha256 == file.sha256
    text = (experiment / dataset / "INDEX.md").read_text()
    for name in FIGURES:
        assert f"(figures/{name}.png)" in text
    for name in TABLES:
        assert f"(tables/{name}.md)" in text


def test_summaries_and_the_report_are_listed_too(experiment: Path) -> None:
    kinds = {file.path: file.kind for file in read_manifest(experiment)}
    assert kinds["report.html"] == "report"
    assert kinds["INDEX.md"] == kinds["sort/INDEX.md"] == kinds["sort/manifest.json"] == "index"
    summaries = [path for path, kind in kinds.items() if kind == "summary"]
    assert len(summaries) == len(grid(1)) + 1


def test_checksums_are_those_of_the_files(experiment: Path) -> None:
    files = read_manifest(experiment)
    for file in files:
        content = (experiment / file.path).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (file.sha256, file.bytes)
    check_files(experiment, files)


def test_every_link_of_an_index_leads_to_something(experiment: Path) -> None:
    for index in (experiment / "INDEX.md", experiment / "sort" / "INDEX.md"):
        targets = re.findall(r"\]\(([^)#]+)", index.read_text())
        assert targets
        assert [t for t in targets if not (index.parent / unquote(t)).exists()] == []


def test_a_changed_or_missing_file_is_named(experiment: Path) -> None:
    files = read_manifest(experiment)
    (experiment / "report.html").write_text("another page")
    with pytest.raises(ManifestError, match=r"report.html: has changed since"):
        check_files(experiment, files)
    (experiment / "report.html").unlink()
    with pytest.raises(ManifestError, match=r"report.html: listed in the manifest, but not there"):
        check_files(experiment, files)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2, "files": []}', '{"version": 1, "files": [{}]}']
)
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ManifestError, match=r"manifest\.json"):
        read_manifest(tmp_path)


def test_a_manifest_does_not_lead_out_of_its_directory(experiment: Path) -> None:
    path = experiment / "manifest.json"
    record = json.loads(path.read_text())
    record["files"][0]["path"] = "../secret"
    path.write_text(json.dumps(record))
    with pytest.raises(ManifestError, match="outside"):
        read_manifest(experiment)


def test_what_is_not_there_is_not_listed(tmp_path: Path) -> None:
    cell = a_cell()
    path = write_cell(tmp_path, cell)
    (tmp_path / "report.html").write_text("")
    write_index(collect({cell: path}), tmp_path, experiment="tried", command="x")
    paths = {file.path for file in read_manifest(tmp_path)}
    assert not [path for path in paths if "/figures/" in path or "/tables/" in path]
    missing = a_cell(seed=1)
    write_index(collect({missing: tmp_path / "no/summary.json"}), tmp_path, experiment="tried", command="x")
    assert f"- {missing.id}: has not begun" in (tmp_path / "sort" / "INDEX.md").read_text()


def test_the_same_files_give_the_same_manifest(experiment: Path) -> None:
    before = (experiment / "manifest.json").read_bytes()
    cells = [*grid(1), a_cell(dataset="jsonl:a/words.jsonl")]
    paths = {c: experiment / c.dataset_slug / "runs" / c.id / "summary.json" for c in cells}
    analyse(experiment, dict(reversed(paths.items())))
    assert (experiment / "manifest.json").read_bytes() == before


def test_latest_leads_to_the_newest_and_moves_with_the_results(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "results" / name).mkdir(parents=True)
        point_latest(tmp_path / "results" / name)
        assert os.readlink(tmp_path / "results" / "latest") == name
    (tmp_path / "results").rename(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / "latest").resolve() == (tmp_path / "elsewhere" / "two").resolve()
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == ["latest", "one", "two"]


def test_an_experiment_named_latest_is_not_overwritten(tmp_path: Path) -> None:
    for name in ("latest", "one"):
        (tmp_path / name).mkdir()
    with pytest.raises(FileExistsError, match="link to the newest experiment"):
        point_latest(tmp_path / "one")
    assert (tmp_path / "latest").is_dir()
