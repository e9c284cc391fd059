"""Which figures there are, what they show, and how one is written to disk."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.links import link


@dataclass(frozen=True)
class Entry:
    """`module` of this package holds a function of the figure's name."""

    module: str
    title: str
    caption: str


FIGURES = {
    "fig_pass_rate_curves": Entry(
        "pass_rate",
        "Pass rate against updates",
        "Pass rate on held-out tasks (one sample a task, top) and on training samples (pooled over windows "
        "of updates, bottom). A column for each objective; the same synchronous runs stand beside each. "
        "Three seeds or more: mean with 95 % interval (Student's t); fewer: each seed by itself.",
    ),
    "fig_staleness_violin": Entry(
        "staleness",
        "Staleness of trained tokens",
        "Share of trained tokens by age in policy versions, measured when their training step began: "
        "each step is as wide as the share of its age, the widest of a violin filling its place. Every cell "
        "counts the same, whatever its tokens. White dots: mean of one cell. Red lines: the bound K.",
    ),
    "fig5c_throughput_vs_staleness": Entry(
        "throughput",
        "Throughput against allowed staleness",
        "Tokens consumed by training a second of wall clock. Small points: one cell. Three seeds or more: "
        "mean with 95 % interval (Student's t); fewer: the line joins means, without interval. The "
        "synchronous runs use the resources of their own configuration; asynchronous runs at K = 0 are "
        "not a synchronous baseline. Cells that needed more than one attempt are left out.",
    ),
}


def write_figure(name: str, cells: Cells, directory: Path) -> None:
    """Draw one figure of one dataset's cells: `name`.png, `name`.svg, and its points as `name`.csv.

    Raises KeyError if there is no figure of that name.
    """
    from async_rollout.analysis.figures.style import save, styled

    draw = getattr(import_module(f"{__package__}.{FIGURES[name].module}"), name)
    with styled():
        drawing = draw(cells, {cell: link(cells.directory(cell), directory) for cell in cells.expected})
        save(drawing, directory / name)
