"""`INDEX.md`: what the analysis made, by chapter, with captions; and the manifests beside it.

One for each dataset, and one on top of the experiment that leads to all of it.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.figures.catalog import FIGURES
from async_rollout.analysis.links import cell_links
from async_rollout.analysis.manifest import MANIFEST_FILE, Artifact, artifact, write_manifest
from async_rollout.analysis.sections import in_order
from async_rollout.analysis.tables.catalog import TABLES
from async_rollout.records.expected import EXPECTED_FILE
from async_rollout.records.files import write_text

INDEX_FILE = "INDEX.md"
LATEST = "latest"


def write_index(cells: Cells, directory: Path, *, experiment: str, command: str) -> None:
    """Write `INDEX.md` and `manifest.json` of each dataset and of the experiment in `directory`.

    Only files that are there are listed; the report tells which are missing.
    """
    everything = []
    for dataset in cells.datasets:
        part = cells.of_dataset(dataset)
        below = directory / part.slug
        text = _dataset_index(part, dataset, below)
        write_text(below / INDEX_FILE, text)
        listed = [
            artifact(below, INDEX_FILE, "index", f"what there is of {dataset}"),
            *_files(part, below),
        ]
        write_manifest(below, experiment, listed)
        everything += [file.below(part.slug) for file in listed]
        everything.append(artifact(directory, f"{part.slug}/{MANIFEST_FILE}", "index", f"files of {dataset}"))
    write_text(directory / INDEX_FILE, _experiment_index(cells, experiment, command))
    on_top = [
        artifact(directory, INDEX_FILE, "index", f"what there is of {experiment}"),
        artifact(directory, "report.html", "report", f"report of {experiment}"),
    ]
    if (directory / EXPECTED_FILE).is_file():
        on_top.append(artifact(directory, EXPECTED_FILE, "data", "the cells that the sweep asks for"))
    write_manifest(directory, experiment, [*on_top, *everything])


def point_latest(experiment: Path) -> None:
    """Let `latest`, beside the experiment's directory, lead to it; never seen missing or half made.

    Raises FileExistsError if something that is no link has that name.
    """
    latest = experiment.parent / LATEST
    if latest.exists() and not latest.is_symlink():
        raise FileExistsError(f"{latest}: the name of the link to the newest experiment; rename what has it")
    fresh = latest.with_name(f".{LATEST}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(experiment.name, target_is_directory=True)
    os.replace(fresh, latest)


def _files(cells: Cells, directory: Path) -> Iterable[Artifact]:
    """What there is of a dataset: figures, tables, and the summaries that they rest on."""
    for name, entry in FIGURES.items():
        for ending in ("png", "svg", "csv"):
            path = f"figures/{name}.{ending}"
            if (directory / path).is_file():
                yield artifact(directory, path, "points" if ending == "csv" else "figure", entry.caption)
    for name, entry in TABLES.items():
        for ending in entry.endings:
            path = f"tables/{name}.{ending}"
            if (directory / path).is_file():
                yield artifact(directory, path, "table", entry.caption)
    for cell, _ in cells.done():
        yield artifact(directory, f"runs/{cell.id}/summary.json", "summary", f"what cell {cell.id} measured")


def _dataset_index(cells: Cells, dataset: str, directory: Path) -> str:
    lines = [f"# {_plain(dataset)}", "", f"{_finished(cells)} [Report](../report.html#{cells.slug})."]
    tables = in_order([name for name in TABLES if (directory / f"tables/{name}.md").is_file()])
    figures = in_order([name for name in FIGURES if (directory / f"figures/{name}.png").is_file()])
    for section in dict.fromkeys([*tables, *figures]):
        lines += ["", f"## {section.title}", ""]
        for name in tables.get(section, []):
            lines.append(
                f"- **[{name}](tables/{name}.md)** ([csv](tables/{name}.csv)): {_plain(TABLES[name].caption)}"
            )
        for name in figures.get(section, []):
            link = f"**[{name}](figures/{name}.png)** ([csv](figures/{name}.csv))"
            lines.append(f"- {link}: {_plain(FIGURES[name].caption)}")
    lines += ["", "## Cells", ""]
    urls = cell_links(cells, directory)
    for cell in cells.expected:
        name = _plain(cell.id)
        lines.append(f"- [{name}]({urls[cell]})" if cell in urls else f"- {name}: has not begun")
    return "\n".join(lines) + "\n"


def _experiment_index(cells: Cells, experiment: str, command: str) -> str:
    lines = [f"# {experiment}", "", f"{_finished(cells)} [Report](report.html).", ""]
    for dataset in cells.datasets:
        slug = cells.of_dataset(dataset).slug
        lines.append(f"- [{_plain(dataset)}]({slug}/{INDEX_FILE}): tables, figures and cells")
    lines += ["", f"[{MANIFEST_FILE}]({MANIFEST_FILE}) holds the checksum of every file.", ""]
    return "\n".join([*lines, "Made by:", "", f"    {command}", ""])


def _finished(cells: Cells) -> str:
    return f"{len(cells.done())} of {len(cells.expected)} cells finished."


def _plain(text: str) -> str:
    """Text that brings no markup of its own into the list."""
    for sign in "\\`*_[]<>|#":
        text = text.replace(sign, f"&#{ord(sign)};" if sign in "<>" else f"\\{sign}")
    return " ".join(text.split())
