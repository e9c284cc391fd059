"""Figures as the report shows them: inside the page, and every point with the cell it came from."""

import base64
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import pandas as pd
from markupsafe import Markup

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.report_tables import Grid, grid
from async_rollout.config.cells import Cell

INLINE = 300_000  # bytes of an SVG; a larger figure is shown as its PNG, whose points are not clickable
MOST_POINTS = 300  # rows; more are left to the csv file


@dataclass(frozen=True)
class Shown:
    """One figure. `svg` or `png` (a data URI) holds the drawing, `points` the numbers if they are few."""

    name: str
    title: str
    caption: str
    anchor: str
    files: list[tuple[str, str]]
    svg: Markup | None
    png: str | None
    count: int
    points: Grid | None


def shown(
    name: str, title: str, caption: str, cells: Cells, urls: Mapping[Cell, str], base: Path
) -> Shown | None:
    """A figure that was drawn in `<dataset>/figures` below `base`; None if it was not."""
    directory = base / cells.slug / "figures"
    svg, png, points = (directory / f"{name}.{ending}" for ending in ("svg", "png", "csv"))
    if not (svg.is_file() and png.is_file() and points.is_file()):
        return None
    frame = pd.read_csv(points, dtype=str, keep_default_na=False)
    anchor = f"{cells.slug}-{name}"
    inline = svg.stat().st_size <= INLINE
    return Shown(
        name,
        title,
        caption,
        anchor,
        [(ending, quote(f"{cells.slug}/figures/{name}.{ending}")) for ending in ("png", "csv")],
        _inline(svg.read_text(encoding="utf-8"), anchor, directory, base) if inline else None,
        None if inline else _data_uri(png),
        len(frame),
        grid(frame, frame, cells, urls, {}) if 0 < len(frame) <= MOST_POINTS else None,
    )


def _data_uri(png: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(png.read_bytes()).decode()}"


def _inline(svg: str, prefix: str, directory: Path, base: Path) -> Markup:
    """An SVG file as part of the page: ids of its own, links seen from the page.

    Its text is outlines that matplotlib drew, so no name in it can become markup.
    """

    def moved(match: re.Match) -> str:
        target = os.path.relpath(directory / unquote(match[1]), base)
        return f'xlink:href="{quote(Path(target).as_posix())}/"'

    body = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    body = re.sub(r'xlink:href="([^"#][^"]*)"', moved, body)
    own = f"f{zlib.crc32(prefix.encode()):x}"  # short, as it stands before each of thousands
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{own}-", body)
    return Markup(body)
