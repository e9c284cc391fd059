"""Links from a figure, a table or the report to the directories of cells."""

import math
import os
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from async_rollout.analysis.collect import AXES, Cells
from async_rollout.config.cells import Cell
from async_rollout.records.cells import SUMMARY_FILE


def link(target: Path, base: Path) -> str:
    """URL of the directory `target`, relative to the directory `base`."""
    return quote(Path(os.path.relpath(target, base)).as_posix()) + "/"


def cell_links(cells: Cells, base: Path) -> dict[Cell, str]:
    """Links, seen from `base`, of the cells that have begun: whose directory holds a record."""
    begun = (cell for cell in cells.expected if _has_begun(cells.directory(cell)))
    return {cell: link(cells.directory(cell), base) for cell in begun}


def _has_begun(directory: Path) -> bool:
    return any((directory / name).is_file() for name in (SUMMARY_FILE, "config.json"))


def cells_of_rows(frame: pd.DataFrame, cells: Cells) -> list[list[Cell]]:
    """For each row of a table the cells that it tells of: those that agree with it on every axis it has.

    A table without an axis tells of no cell in particular.
    """
    if "cell" in frame:
        by_id = {cell.id: cell for cell in cells.expected}
        return [[by_id[name]] if name in by_id else [] for name in frame["cell"]]
    axes = [axis for axis in (*AXES, "objective") if axis in frame and axis != "dataset"]
    found: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells.expected if axes else ():
        found.setdefault(tuple(_axis(axis, _value(cells, cell, axis)) for axis in axes), []).append(cell)
    rows = frame[axes].itertuples(index=False, name=None)
    return [found.get(tuple(map(_axis, axes, row)), []) for row in rows]


def _value(cells: Cells, cell: Cell, axis: str) -> object:
    if axis != "objective":
        return getattr(cell, axis)
    known = cells.summaries.get(cell) or cells.plans.get(cell)
    return known.objective if known else math.nan


def _axis(axis: str, value: object) -> str:
    """A value of an axis as every table writes it: the base arm is empty in a cell, `base` in tables."""
    if axis == "arm":
        return str(value) or "base"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
