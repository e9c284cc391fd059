"""`report.html`: one file that needs no network, made from records, tables and drawn figures.

Names, paths and model output are untrusted: everything is escaped but the figures, whose
text matplotlib has turned into outlines; and the page's own policy lets only its own
script run.
"""

import base64
import hashlib
import os
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote, unquote

import jinja2
import pandas as pd
from markupsafe import Markup

from async_rollout.analysis import checks as checking
from async_rollout.analysis.collect import Cells
from async_rollout.analysis.columns import COLUMNS
from async_rollout.analysis.figures.catalog import FIGURES
from async_rollout.analysis.links import link
from async_rollout.analysis.sentences import sentences
from async_rollout.analysis.settings import environment, settings
from async_rollout.analysis.tables import display, mode_aggregate, summary_headline
from async_rollout.config.report import ReportConfig
from async_rollout.records.files import write_text


def write_report(cells: Cells, path: Path, report: ReportConfig, *, experiment: str, command: str) -> None:
    """Write the report of all datasets to `path`; figures are read from `<dataset>/figures` beside it.

    `command` is how the results are made again. A figure that was not drawn is a finding.
    """
    findings = checking.checks(cells)
    datasets = []
    for name in cells.datasets:
        part = cells.of_dataset(name)
        figures, undrawn = _figures(part, path.parent)
        findings += undrawn
        headline = summary_headline(part, report)
        datasets.append(
            {
                "name": name,
                "slug": part.slug,
                "sentences": sentences(headline, report.k_headline),
                "tables": _tables(part, headline, path.parent),
                "figures": figures,
            }
        )
    done = [summary for _, summary in cells.done()]
    shared, varying = settings(done)
    urls = _urls(cells, path.parent)
    findings.sort(key=lambda check: checking.LEVELS.index(check.level))
    script = (files(__package__) / "templates" / "report.js").read_text(encoding="utf-8")
    html = _template().render(
        experiment=experiment,
        unreal=checking.unreal_backends(cells),
        done=len(done),
        expected=len(cells.expected),
        checks=[(c.level, c.cell.id if c.cell else "", urls.get(c.cell), c.text) for c in findings],
        datasets=datasets,
        shared=shared,
        varying=varying,
        environment=environment(done),
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


def _urls(cells: Cells, base: Path) -> dict:
    return {cell: link(cells.directory(cell), base) for cell in cells.expected}


def _tables(cells: Cells, headline: pd.DataFrame, base: Path) -> list[dict]:
    """Both tables as text, without the dataset that their section names."""
    urls = {cell.id: url for cell, url in _urls(cells, base).items()}
    captions = {
        "mode_aggregate": "Mean ± standard deviation over seeds. "
        "Speeds leave out cells that needed several attempts.",
        "summary_headline": "Every cell that the sweep asks for.",
    }
    frames = {"mode_aggregate": mode_aggregate(headline), "summary_headline": headline}
    tables = []
    for name, frame in frames.items():
        shown = display(frame.drop(columns="dataset"))
        tables.append(
            {
                "name": name,
                "caption": captions[name],
                "csv": quote(f"{cells.slug}/tables/{name}.csv"),
                **_grid(shown, urls),
            }
        )
    return tables


def _grid(shown: pd.DataFrame, urls: Mapping[str, str]) -> dict:
    """Header (label, meaning) and rows (link or None, texts) of a table."""
    meanings = {column.label: column.meaning for column in COLUMNS.values()}
    rows = [
        (urls.get(row[0]) if shown.columns[0] == "cell" else None, row)
        for row in shown.itertuples(index=False, name=None)
    ]
    return {"header": [(label, meanings.get(label, "")) for label in shown.columns], "rows": rows}


def _figures(cells: Cells, base: Path) -> tuple[list[dict], list[checking.Check]]:
    """The drawn figures of one dataset, and a finding for each that is not there."""
    directory = base / cells.slug / "figures"
    urls = {cell.id: url for cell, url in _urls(cells, base).items()}
    drawn, undrawn = [], []
    for name, entry in FIGURES.items():
        svg, points = directory / f"{name}.svg", directory / f"{name}.csv"
        if not (svg.is_file() and points.is_file()):
            undrawn.append(checking.Check("error", f"figure {name} of {cells.datasets[0]} was not drawn"))
            continue
        table = pd.read_csv(points, dtype=str, keep_default_na=False)
        prefix = f"{cells.slug}-{name}"
        drawn.append(
            {
                "name": name,
                "title": entry.title,
                "caption": entry.caption,
                "anchor": prefix,
                "files": [
                    (end, quote(f"{cells.slug}/figures/{name}.{end}")) for end in ("png", "svg", "csv")
                ],
                "svg": _inline(svg.read_text(encoding="utf-8"), prefix, directory, base),
                **_grid(table, urls),
            }
        )
    return drawn, undrawn


def _inline(svg: str, prefix: str, directory: Path, base: Path) -> Markup:
    """An SVG file as part of the page: ids of its own, links seen from the page."""

    def moved(match: re.Match) -> str:
        target = os.path.relpath(directory / unquote(match[1]), base)
        return f'xlink:href="{quote(Path(target).as_posix())}/"'

    body = svg[svg.index("<svg") :]
    body = re.sub(r'xlink:href="([^"#][^"]*)"', moved, body)
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", body)
    return Markup(body)
