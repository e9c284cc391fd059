"""A snapshot of an experiment that can be committed: what the tables rest on, and all that was made of it.

Commits' rows are compressed; samples, traces, logs, checkpoints and models stay behind, and figures as
SVG, which the report holds. The same experiment gives the same bytes.
"""

import json
import lzma
import os
import re
import shutil
import tempfile
from pathlib import Path
from urllib.parse import unquote

from async_rollout.analysis.manifest import MANIFEST_FILE, check_files, leave_out, read_manifest
from async_rollout.records.cells import METRICS_FILE
from async_rollout.records.files import write_record

SUMMARY = "summary.json"
OF_A_CELL = (SUMMARY, METRICS_FILE)
LEFT_OUT = ".svg"
CONFIG = "config.json"  # of a cell without summary, which would hold it
AGAIN = "make the report again: async-rollout report CONFIG"
_HREF = re.compile(r'\bhref="([^"#:]+)(?:#[^"]*)?"')


class PublishError(ValueError):
    """An experiment that cannot be published as it is; `fix` says what to do."""

    def __init__(self, what: str, fix: str):
        super().__init__(what)
        self.fix = fix


def publish(experiment: Path, out: Path, limit: int) -> int:
    """Copy what is worth keeping of `experiment` to `out`; returns the bytes.

    A snapshot that is at `out` is replaced as a whole. Raises PublishError, and leaves `out` as it
    was, if the snapshot would be larger than `limit` bytes, names a path of this machine, or holds
    a report with a link that leads nowhere; ManifestError if files are not those that the report
    was made from; FileNotFoundError if there is no report.
    """
    if out.exists() and not (out / MANIFEST_FILE).is_file():
        raise PublishError(f"{out} is there already, and no snapshot", "name another directory")
    wanted = _wanted(experiment)
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        for path in wanted:
            (fresh / path).parent.mkdir(parents=True, exist_ok=True)
            if path.name == SUMMARY:
                _copy_without_trace(experiment / path, fresh / path)
            elif path.name == METRICS_FILE:  # else most of a snapshot; an eighth of it so
                packed = lzma.compress((experiment / path).read_bytes())
                (fresh / f"{path}.xz").write_bytes(packed)
            else:
                shutil.copyfile(experiment / path, fresh / path)
        for dataset in fresh.glob(f"*/{MANIFEST_FILE}"):
            leave_out(dataset.parent, LEFT_OUT)
        leave_out(fresh, LEFT_OUT)  # lists those of the datasets
        size = sum(path.stat().st_size for path in fresh.rglob("*") if path.is_file())
        if size > limit:
            raise PublishError(
                f"{size / 1e6:.1f} MB, more than {limit / 1e6:g}",
                "raise --limit-mb, if that is meant",
            )
        _refuse_dead_links(fresh)
        _refuse_local_paths(fresh, wanted)
        fresh.chmod(0o755)
        if out.exists():
            old = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}.old."))
            os.replace(out, old)
            os.replace(fresh, out)
            shutil.rmtree(old)
        else:
            os.replace(fresh, out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return size


def _wanted(experiment: Path) -> list[Path]:
    """Files to copy, relative to the experiment: the manifest's, and those of each cell."""
    files = read_manifest(experiment)
    check_files(experiment, files)
    wanted = {Path(MANIFEST_FILE), *(Path(file.path) for file in files if not file.path.endswith(LEFT_OUT))}
    for cell in (Path(target) for target in _targets(experiment) if target.endswith("/")):
        names = OF_A_CELL if (experiment / cell / SUMMARY).is_file() else (CONFIG,)
        wanted |= {cell / name for name in names if (experiment / cell / name).is_file()}
    return sorted(wanted)


def _copy_without_trace(summary: Path, to: Path) -> None:
    """The summary with the events of its trace counted as left out; a damaged one as it is."""
    try:
        record = json.loads(summary.read_bytes())
        trace = record["event_trace"]
        record["event_trace"] = {
            "seconds": [],
            "name": [],
            "role": [],
            "left_out": trace["left_out"] + len(trace["seconds"]),
        }
    except (ValueError, KeyError, TypeError):
        shutil.copyfile(summary, to)
    else:
        write_record(to, record)


def _targets(directory: Path) -> list[str]:
    """Where the report's links lead: cells' directories, with a slash at their end, and files."""
    page = (directory / "report.html").read_text(encoding="utf-8")
    return sorted({unquote(target) for target in _HREF.findall(page)})


def _refuse_dead_links(snapshot: Path) -> None:
    for target in _targets(snapshot):
        if not (snapshot / target).exists():
            raise PublishError(f"report.html links to {target}, which is not in the snapshot", AGAIN)


def _refuse_local_paths(snapshot: Path, files: list[Path]) -> None:
    here = {str(Path.cwd()).encode(), str(Path.home()).encode()} - {b"/"}
    for path in files:
        if path.name == METRICS_FILE:  # numbers only
            continue
        content = (snapshot / path).read_bytes()
        for place in here:
            if place + b"/" in content:
                raise PublishError(
                    f"{path} names {place.decode()}, a path of this machine", "configure relative paths"
                )
