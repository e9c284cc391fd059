"""`report.html`: one file that needs no network, made from records, tables and drawn figures.

Names, paths and model output are untrusted: everything is escaped but the figures, whose
text matplotlib has turned into outlines; and the page's own policy lets only its own
script run.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

import jinja2
import pandas as pd
from markupsafe import Markup

from async_rollout.analysis import checks as checking
from async_rollout.analysis.collect import Cells
from async_rollout.analysis.columns import COLUMNS
from async_rollout.analysis.figures.catalog import FIGURES
from async_rollout.analysis.links import cell_links
from async_rollout.analysis.report_figures import Shown, shown
from async_rollout.analysis.report_tables import Grid, grid, plain_grid
from async_rollout.analysis.sections import CHECKS, SECTIONS, Section, in_order
from async_rollout.analysis.sentences import sentences
from async_rollout.analysis.settings import environment, settings
from async_rollout.analysis.tables.catalog import TABLES, build_tables
from async_rollout.analysis.tables.writing import display
from async_rollout.config.cells import Cell
from async_rollout.config.report import ReportConfig
from async_rollout.records.files import write_text

MEANINGS = {column.label: column.meaning for column in COLUMNS.values()}


@dataclass(frozen=True)
class Table:
    """A table as the page shows it."""

    name: str
    title: str
    caption: str
    csv: str
    grid: Grid


@dataclass(frozen=True)
class Chapter:
    """One section of one dataset."""

    anchor: str
    section: Section
    sentences: list[str]
    tables: list[Table]
    figures: list[Shown]


def write_report(
    cells: Cells,
    path: Path,
    report: ReportConfig,
    *,
    experiment: str,
    command: str,
    made_with: Mapping[str, str] | None = None,
) -> None:
    """Write the report of all datasets to `path`; figures are read from `<dataset>/figures` beside it.

    `command` is how the results are made again, `made_with` what the report itself was made with.
    A figure that was not drawn is a finding.
    """
    urls = cell_links(cells, path.parent)
    findings, datasets = checking.checks(cells), []
    for name in cells.datasets:
        part = cells.of_dataset(name)
        chapters, undrawn = _chapters(part, urls, path.parent, report)
        findings += undrawn
        datasets.append({"name": name, "slug": part.slug, "chapters": chapters})
    findings.sort(key=lambda check: checking.LEVELS.index(check.level))
    done = [summary for _, summary in cells.done()]
    shared, varying = settings(done)
    script = (files(__package__) / "templates" / "report.js").read_text(encoding="utf-8")
    html = _template().render(
        experiment=experiment,
        unreal=checking.unreal_backends(cells),
        done=len(done),
        expected=len(cells.expected),
        levels={level: Counter(c.level for c in findings)[level] for level in checking.LEVELS},
        checks=[(c.level, c.cell.id if c.cell else "", urls.get(c.cell), c.text) for c in findings],
        datasets=datasets,
        shared=plain_grid(shared, ("key", "value")),
        varying=plain_grid({k: _counts(v) for k, v in varying.items()}, ("key", "values")),
        environment=plain_grid(
            {k: _counts(v) for k, v in environment(done).items()} | dict(made_with or {}), ("what", "value")
        ),
        command=command,
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    write_text(path, html)


def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("async_rollout.analysis")
    env = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return env.get_template("report.html.j2")


def _chapters(
    cells: Cells, urls: Mapping[Cell, str], base: Path, report: ReportConfig
) -> tuple[list[Chapter], list[checking.Check]]:
    """The chapters of one dataset, and a finding for each figure that is not there.

    The checks have no chapter: those of all datasets head the page.
    """
    frames = dict(build_tables(cells, report))
    said = sentences(frames, report)
    tables, figures = in_order(list(frames)), in_order(list(FIGURES))
    chapters, undrawn = [], []
    for section in SECTIONS:
        if section == CHECKS:
            continue
        drawn = []
        for name in figures.get(section, []):
            figure = shown(name, FIGURES[name].title, FIGURES[name].caption, cells, urls, base)
            if figure:
                drawn.append(figure)
            else:
                undrawn.append(checking.Check("error", f"figure {name} of {cells.datasets[0]} was not drawn"))
        made = [_table(name, frames[name], cells, urls) for name in tables.get(section, [])]
        anchor = f"{cells.slug}-{section.name}-chapter"
        if made or drawn or section.name in said:
            chapters.append(Chapter(anchor, section, said.get(section.name, []), made, drawn))
    return chapters, undrawn


def _table(name: str, frame: pd.DataFrame, cells: Cells, urls: Mapping[Cell, str]) -> Table:
    entry = TABLES[name]
    shown_frame = display(frame.drop(columns="dataset", errors="ignore"))
    return Table(
        name,
        entry.title,
        entry.caption,
        quote(f"{cells.slug}/tables/{name}.csv"),
        grid(frame, shown_frame, cells, urls, MEANINGS),
    )


def _counts(values: Mapping[str, int]) -> str:
    """`a` where all cells agree, else `a (3 cells); b (1 cell)`."""
    if len(values) == 1:
        return next(iter(values))
    return "; ".join(f"{value} ({n} {'cell' if n == 1 else 'cells'})" for value, n in values.items())
