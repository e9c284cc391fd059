"""Small multiples: panels of one size that share their axes, and a legend outside of the data."""

import math
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from async_rollout.analysis.figures import style
from async_rollout.analysis.figures.drawing import Scene, new_figure

MOST = 12  # panels; more are unreadable on a page


def grid(
    scene: Scene,
    title: str,
    count: int,
    *,
    height: float = 1.9,
    per_row: int = 3,
    sharex: bool | str = True,
    sharey: bool | str = True,
    note: str = "",
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, row by row, each `height` inches; a lone panel is higher.

    Beyond `MOST` panels are left out, and the heading says so.
    """
    if count > MOST:
        note = "; ".join(filter(None, [note, f"{MOST} of {count} panels drawn, all points are in the csv"]))
        count = MOST
    columns = min(count, per_row)
    rows = math.ceil(count / columns)
    tall = max(height, 2.6) if count == 1 else height
    figure = new_figure(scene, title, rows * (tall + 0.35), note=note)
    panels = figure.subplots(rows, columns, sharex=sharex, sharey=sharey, squeeze=False)
    flat = list(panels.flat)
    for axes in flat[count:]:
        axes.remove()
    if sharex is True:
        for axes in flat[max(count - columns, 0) : count]:  # above a place that is left free
            axes.tick_params(labelbottom=True)
    return figure, flat[:count]


def in_one_row(scene: Scene, title: str, widths: Sequence[float]) -> tuple[Figure, list[Axes]]:
    """Panels side by side, as wide as they need."""
    figure = new_figure(scene, title, 3.4)
    axes = figure.subplots(1, len(widths), sharey=True, squeeze=False, width_ratios=widths)
    return figure, list(axes[0])


def end(axes: Sequence[Axes], along: str) -> float:
    """Where the data of all these panels end along `x` or `y`, with a margin; above 0."""
    ends = [edge for panel in axes if math.isfinite(edge := getattr(panel.dataLim, f"{along}1"))]
    return 1.06 * max(ends, default=0.0) or 1.0


def label_edges(axes: Sequence[Axes], x: str, y: str, per_row: int = 3) -> None:
    """Axis labels at the left and at the bottom only."""
    columns = min(len(axes), per_row)
    for index, panel in enumerate(axes):
        if index % columns == 0:
            panel.set_ylabel(y)
        if index + columns >= len(axes):
            panel.set_xlabel(x)


def legend(figure: Figure, handles: list[Line2D], title: str = "") -> None:
    """One legend below all panels; the figure grows by its height."""
    if not handles:
        return
    room = figure.get_figwidth() * 106 / mpl.rcParams["legend.fontsize"]  # characters
    lengths = [len(handle.get_label()) + 7 for handle in handles]
    most = len(handles) if sum(lengths) <= room else max(1, int(room / max(lengths)))
    rows = math.ceil(len(handles) / most)
    columns = math.ceil(len(handles) / rows)
    rows += bool(title)
    figure.set_figheight(figure.get_figheight() + 0.2 * rows + 0.1)
    figure.legend(
        handles=handles, loc="outside lower center", ncols=columns, title=style.plain(title) or None
    )
