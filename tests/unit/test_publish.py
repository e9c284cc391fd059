"""A published snapshot: small, whole, the same each time; what cannot be published leaves it as it was."""

import hashlib
import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from async_rollout.analysis.collect import collect
from async_rollout.analysis.index import write_index
from async_rollout.analysis.manifest import ManifestError, check_files, read_manifest
from async_rollout.analysis.publish import PublishError, publish
from async_rollout.analysis.report import write_report
from async_rollout.analysis.tables.catalog import write_tables
from async_rollout.cli import main
from async_rollout.config.report import ReportConfig
from async_rollout.records.cells import read_metrics
from drawn import draw_quickly
from summaries import a_cell, grid, write_grid

LEFT_OUT = ("results.jsonl", "trace.json", "stdout.log", "stderr.log", "states.jsonl", "resources.csv")
LIMIT = 10_000_000


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """Four cells that finished, one that failed half-way, one that never began."""
    directory = tmp_path / "results" / "tried"
    paths = write_grid(directory, grid(1, ks=(4,)))
    failed, queued = a_cell(seed=1), a_cell(seed=2)
    for cell in (failed, queued):
        paths[cell] = directory / "sort" / "runs" / cell.id / "summary.json"
    for path in paths.values():
        if path != paths[queued]:
            path.parent.mkdir(exist_ok=True)
            (path.parent / "config.json").write_text("{}")
            (path.parent / "checkpoint").mkdir()
            for name in LEFT_OUT:
                (path.parent / name).write_text("much")
    cells = collect(paths)
    write_tables(cells, directory / "sort" / "tables", ReportConfig())
    draw_quickly(cells, directory / "sort" / "figures")
    names = {"experiment": "tried", "command": "make tried"}
    write_report(cells, directory / "report.html", ReportConfig(), **names)
    write_index(cells, directory, **names)
    return directory


def content(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(p.relative_to(directory)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_a_snapshot_holds_what_tables_rest_on_and_no_more(experiment: Path, tmp_path: Path) -> None:
    out = tmp_path / "published" / "tried"
    size = publish(experiment, out, LIMIT)
    held = content(out)
    assert size == sum((out / path).stat().st_size for path in held)
    cell = f"sort/runs/{a_cell(seed=0).id}"
    for name in ("summary.json", "metrics.jsonl.xz"):
        assert f"{cell}/{name}" in held
    assert read_metrics(out / cell) == read_metrics(experiment / cell)
    kept, whole = (json.loads((base / cell / "summary.json").read_text()) for base in (out, experiment))
    events = whole.pop("event_trace")
    assert kept.pop("event_trace")["left_out"] == events["left_out"] + len(events["seconds"])
    assert kept == whole
    assert f"sort/runs/{a_cell(seed=1).id}/config.json" in held
    assert not [path for path in held if path.endswith(LEFT_OUT) or "checkpoint" in path]
    for path in ("report.html", "INDEX.md", "manifest.json", "sort/tables/speedups.md"):
        assert path in held
    assert not [path for path in held if path.endswith(".svg")]
    for directory in (out, out / "sort"):
        listed = read_manifest(directory)
        assert [file for file in listed if file.path.endswith(".png")]
        assert not [file for file in listed if file.path.endswith(".svg")]
        check_files(directory, listed)


def test_links_lead_somewhere_within_the_snapshot(experiment: Path, tmp_path: Path) -> None:
    publish(experiment, tmp_path / "out", LIMIT)
    experiment.rename(tmp_path / "gone")
    targets = set(re.findall(r'href="([^"#]+)"', (tmp_path / "out/report.html").read_text()))
    assert len(targets) > 20
    assert [t for t in targets if not (tmp_path / "out" / unquote(t)).exists()] == []


def test_the_same_experiment_gives_the_same_bytes_and_replaces_what_was_there(
    experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    publish(experiment, out, LIMIT)
    before = content(out)
    (out / "sort" / "runs" / "old").mkdir()
    (out / "sort" / "runs" / "old" / "summary.json").write_text("{}")
    publish(experiment, out, LIMIT)
    assert content(out) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "results"]


def test_what_is_no_snapshot_is_not_replaced(experiment: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(PublishError, match="no snapshot"):
        publish(experiment, tmp_path / "out", LIMIT)
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"


def test_a_cell_that_has_changed_since_the_report_is_refused(experiment: Path, tmp_path: Path) -> None:
    (experiment / "sort" / "runs" / a_cell().id / "summary.json").write_text("{}")
    with pytest.raises(ManifestError, match="has changed since the report was made"):
        publish(experiment, tmp_path / "out", LIMIT)
    assert not (tmp_path / "out").exists()


def test_too_large_dead_links_and_local_paths_are_refused(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(experiment, tmp_path / "out", LIMIT)
    before = content(tmp_path / "out")
    with pytest.raises(PublishError, match="MB, more than"):
        publish(experiment, tmp_path / "out", 1000)
    config = experiment / "sort" / "runs" / a_cell(seed=1).id / "config.json"
    config.write_text('{"model": {"id": "/home/ann/lab/models/mine"}}')
    monkeypatch.setattr(Path, "cwd", lambda: Path("/home/ann/lab"))
    with pytest.raises(PublishError, match=r"config.json names /home/ann/lab, a path of this machine"):
        publish(experiment, tmp_path / "out", LIMIT)
    config.write_text('{"model": {"id": "/root/models/mine"}}')
    monkeypatch.setattr(Path, "home", lambda: Path("/root"))
    with pytest.raises(PublishError, match=r"config.json names /root, a path of this machine"):
        publish(experiment, tmp_path / "out", LIMIT)
    config.unlink()
    with pytest.raises(PublishError, match=r"report.html links to .*-s1/, which is not in the snapshot"):
        publish(experiment, tmp_path / "out", LIMIT)
    summary = experiment / "sort" / "runs" / a_cell().id / "summary.json"
    summary.rename(summary.with_name("old.json"))
    with pytest.raises(ManifestError, match="not there"):
        publish(experiment, tmp_path / "out", LIMIT)
    assert content(tmp_path / "out") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "results"]


def test_the_command_says_the_size_and_refuses_with_a_fix(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(["publish", str(experiment), "--out", str(tmp_path / "out")]) == 0
    assert re.search(r"out: \d+\.\d MB", capsys.readouterr().out)
    assert main(["publish", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]) == 2
    assert "async-rollout report" in capsys.readouterr().err


def test_what_is_published_here_stays_small() -> None:
    published = Path(__file__).parents[2] / "results" / "published"
    assert sum(path.stat().st_size for path in published.rglob("*") if path.is_file()) < 30_000_000
