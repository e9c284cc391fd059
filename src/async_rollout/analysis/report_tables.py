"""Tables as the report shows them: texts, and the cells behind each row as links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.links import cells_of_rows
from async_rollout.config.cells import Cell

MOST_LINKS = 12  # a row that tells of more cells than this names their number instead


@dataclass(frozen=True)
class Row:
    """A row's texts; `url` leads from the first of them to its one cell, `seeds` to each of several."""

    texts: Sequence[str]
    url: str | None = None
    seeds: Sequence[tuple[str, str]] = ()
    cells: int = 0  # that the row tells of
    bad: bool = False  # a cell that is missing or broken


@dataclass(frozen=True)
class Grid:
    """A table: labels with their meanings, and rows. `linked`: the rows have a column of seeds."""

    header: Sequence[tuple[str, str]]
    rows: Sequence[Row]
    linked: bool = False


def grid(
    frame: pd.DataFrame,
    shown: pd.DataFrame,
    cells: Cells,
    urls: Mapping[Cell, str],
    meanings: Mapping[str, str],
) -> Grid:
    """`shown` is `frame` as texts, row by row. `meanings` explains labels; some need none."""
    header = [(label, meanings.get(label, "")) for label in shown.columns]
    behind = cells_of_rows(frame, cells)
    texts = [list(map(str, row)) for row in shown.itertuples(index=False, name=None)]
    if "cell" in frame:
        rows = [
            Row(text, url=urls.get(of[0]) if of else None, bad=any(cell in cells.gaps for cell in of))
            for text, of in zip(texts, behind, strict=True)
        ]
        return Grid(header, rows)
    rows = [Row(text, seeds=_seeds(of, urls), cells=len(of)) for text, of in zip(texts, behind, strict=True)]
    return Grid(header, rows, linked=any(row.cells for row in rows))


def plain_grid(table: Mapping[str, str], header: tuple[str, str]) -> Grid:
    """Two columns: names and values."""
    return Grid([(label, "") for label in header], [Row(pair) for pair in table.items()])


def _seeds(of: list[Cell], urls: Mapping[Cell, str]) -> list[tuple[str, str]]:
    """Label and link of each cell; none where they are too many to name."""
    known = [cell for cell in of if cell in urls]
    if len(of) > MOST_LINKS:
        return []
    seeds_alone = len({cell.seed for cell in of}) == len(of)
    return [(f"s{cell.seed}" if seeds_alone else cell.id, urls[cell]) for cell in known]
