"""Stand-ins for drawn figures: what a reader of figures needs, made at once."""

import base64
from pathlib import Path

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.figures.catalog import FIGURES
from async_rollout.analysis.links import link

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)


def draw_quickly(cells: Cells, directory: Path) -> None:
    """Every figure of the catalog, for one dataset's cells: a point for each that is done."""
    directory.mkdir(parents=True, exist_ok=True)
    links = [link(cells.directory(cell), directory) for cell, _ in cells.done()]
    points = "".join(f'<a xlink:href="{url}"><circle id="p{i}" r="1"/></a>' for i, url in enumerate(links))
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{points}</svg>'
    table = "".join(f"{cell.id},1\n" for cell, _ in cells.done())
    for name in FIGURES:
        (directory / f"{name}.png").write_bytes(PNG)
        (directory / f"{name}.svg").write_text(svg)
        (directory / f"{name}.csv").write_text(f"cell,value\n{table}")
