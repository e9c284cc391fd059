"""How the figures look, and how they are saved so that the same data gives the same bytes.

Colors are Okabe and Ito's, which the color-blind can tell apart; markers and line styles
repeat what colors say, so that print in gray can be read.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from async_rollout.analysis.collect import Cells

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (5, 1.5, 1, 1.5)))
SYNC = "#555555"
MODE_COLORS = {"sync": SYNC, "areal": COLORS[0], "async": COLORS[1], "lagged": COLORS[2]}
MODE_LINES = {"sync": LINES[1], "areal": LINES[0], "async": LINES[3], "lagged": LINES[2]}
DPI = 200
_STYLE = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 3.0,
    "svg.hashsalt": "async-rollout",
    "svg.fonttype": "path",
    "figure.dpi": 100,
}


@dataclass(frozen=True)
class Drawing:
    """A figure and the numbers in it: a row a point, with the id of its `cell`."""

    figure: Figure
    points: pd.DataFrame


def styled() -> AbstractContextManager:
    """The settings under which figures are drawn and saved."""
    return mpl.rc_context(_STYLE)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure (inches) whose parts make room for each other."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(drawing: Drawing, stem: Path) -> None:
    """`stem`.png, .svg and .csv; without dates."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    drawing.figure.savefig(stem.with_name(f"{stem.name}.png"), dpi=DPI, metadata={"Software": None})
    drawing.figure.savefig(stem.with_name(f"{stem.name}.svg"), metadata={"Date": None, "Creator": None})
    drawing.points.to_csv(stem.with_name(f"{stem.name}.csv"), index=False, float_format="%.10g")


def heading(figure: Figure, title: str, cells: Cells) -> None:
    """The title, and what a reader must know before the first look."""
    names = sorted({s.backend for _, s in cells.done()} - {"causal_lm"})
    warning = f"\nholds cells of backend {' and '.join(names)}: no language model" if names else ""
    datasets = ", ".join(plain(name) for name in cells.datasets)
    figure.suptitle(f"{title}: {datasets}{warning}", fontsize=11, color="#b00020" if names else "black")


def nothing(cells: Cells, title: str, why: str) -> Drawing:
    """A figure that says why it is empty."""
    figure = new_figure(6, 2)
    heading(figure, title, cells)
    axes = figure.add_subplot()
    axes.axis("off")
    axes.text(0.5, 0.5, plain(why), ha="center", va="center", transform=axes.transAxes)
    return Drawing(figure, pd.DataFrame(columns=["cell"]))


def clear_points(axes: Axes, x: list[float], y: list[float], urls: list[str], **look) -> None:
    """Points of which each links to its cell."""
    axes.scatter(x, y, **look).set_urls(urls)


def sample(label: str, **look) -> Line2D:
    """An entry of a legend."""
    return Line2D([], [], label=plain(label), **look)


def plain(text: str) -> str:
    """Text in which a dollar sign begins no formula."""
    return text.replace("$", r"\$")


def k_color(k: int | str, ks: list) -> str:
    """Color of a staleness bound among all that are drawn."""
    return COLORS[ks.index(k) % len(COLORS)]


def k_marker(k: int | str, ks: list) -> str:
    """Marker of a staleness bound among all that are drawn."""
    return MARKERS[ks.index(k) % len(MARKERS)]


def k_label(k: int | str) -> str:
    """`inf` as the sign."""
    return "∞" if k == "inf" else str(k)
