"""Pass rates against updates."""

import math
from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.figures import style
from async_rollout.analysis.series import bounds, by_schedule, variants
from async_rollout.analysis.statistics import CLAIM_N, estimate
from async_rollout.config.cells import Cell
from async_rollout.records.cells import read_metrics

TITLE = "Pass rate against updates"
WINDOWS = 12  # of training updates along the axis
PER_ROW = 4


def fig_pass_rate_curves(cells: Cells, links: Mapping[Cell, str]) -> style.Drawing:
    """Two panels for each objective: held-out and training pass rate, a curve for each (mode, K)."""
    columns = variants(cells)
    if not columns:
        return style.nothing(cells, TITLE, "no cell has finished")
    width, rows = min(len(columns), PER_ROW), 2 * math.ceil(len(columns) / PER_ROW)
    figure = style.new_figure(max(2.9 * width + 0.6, 6.2), 2.3 * rows + 1.5)
    style.heading(figure, TITLE, cells)
    panels = figure.subplots(rows, width, sharex=True, sharey=True, squeeze=False)
    curves = _curves(cells)
    ks = bounds(cells)
    for axes in panels[:, 0]:
        axes.set_ylim(-0.02, 1.02)
    for index in range(rows // 2 * width):
        top, bottom = (
            panels[2 * (index // width)][index % width],
            panels[2 * (index // width) + 1][index % width],
        )
        if index >= len(columns):
            top.set_visible(False)
            bottom.set_visible(False)
            continue
        schedules = by_schedule(cells, columns[index])
        for axes, kind in ((top, "held-out"), (bottom, "training")):
            for (mode, k), seeds in schedules.items():
                found = [(cell, curves[cell, kind]) for cell, _ in seeds]
                _draw(axes, found, links, _look(mode, k, ks))
        top.set_title(f"{style.plain(columns[index].label(columns))}\n{_counts(schedules)}")
        bottom.set_xlabel("updates (policy version)")
        bottom.tick_params(labelbottom=True)
    for row, axes in enumerate(panels[:, 0]):
        axes.set_ylabel("pass rate, training" if row % 2 else "pass rate, held-out")
    _legend(figure, cells, ks)
    return style.Drawing(figure, _points(cells, curves))


def _curves(cells: Cells) -> dict[tuple[Cell, str], list[tuple[float, float]]]:
    """(updates, pass rate) of each cell, held-out and in training; empty where style.nothing was recorded."""
    curves = {}
    for cell, summary in cells.done():
        points = sorted(summary.eval_pass_rate, key=lambda point: point.version)
        curves[cell, "held-out"] = [(float(point.updates), point.sampled) for point in points]
        curves[cell, "training"] = _training(cells, cell)
    return curves


def _training(cells: Cells, cell: Cell) -> list[tuple[float, float]]:
    """Solved ÷ judged samples, pooled over equal windows of updates, at the middle of each."""
    try:
        rows = read_metrics(cells.directory(cell))
    except FileNotFoundError:
        return []
    size = max(1, math.ceil(len(rows) / WINDOWS))
    curve = []
    for start in range(0, len(rows), size):
        window = rows[start : start + size]
        judged = sum(row.correct + row.incorrect for row in window)
        if judged:
            middle = (window[0].version + window[-1].version) / 2
            curve.append((middle, sum(row.correct for row in window) / judged))
    return curve


def _draw(axes: Axes, seeds: list, links: Mapping[Cell, str], look: dict) -> None:
    """The mean of three seeds and more with its interval, or each seed by itself."""
    line = {"color": look["color"], "linestyle": look["linestyle"]}
    if len(seeds) >= CLAIM_N:
        by_x: dict[float, list[float]] = {}
        for _, curve in seeds:
            for x, y in curve:
                by_x.setdefault(x, []).append(y)
        full = sorted(x for x, values in by_x.items() if len(values) >= CLAIM_N)
        means = [estimate(by_x[x]) for x in full]
        half = [(m.high - m.low) / 2 for m in means]
        axes.errorbar(
            full,
            [m.mean for m in means],
            half,
            **line,
            marker=look["marker"],
            markersize=3.5,
            linewidth=1.4,
            elinewidth=0.8,
            capsize=1.5,
        )
        return
    for cell, curve in seeds:
        xs, ys = [x for x, _ in curve], [y for _, y in curve]
        axes.plot(xs, ys, **line, linewidth=1.1, alpha=0.85)
        style.clear_points(
            axes, xs, ys, [links[cell]] * len(xs), s=11, marker=look["marker"], color=look["color"], zorder=3
        )


def _look(mode: str, k: int | str, ks: list) -> dict:
    if mode == "sync":
        return {"color": style.SYNC, "linestyle": style.MODE_LINES["sync"], "marker": "x"}
    return {
        "color": style.k_color(k, ks),
        "linestyle": style.MODE_LINES[mode],
        "marker": style.k_marker(k, ks),
    }


def _counts(schedules: dict) -> str:
    """`n = 2, each seed drawn`: seeds behind a curve."""
    counts = sorted({len(seeds) for seeds in schedules.values()})
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    if counts[-1] < CLAIM_N:
        return f"{n}, each seed drawn"
    return f"{n}, mean and 95 % interval" + ("" if counts[0] >= CLAIM_N else " where n ≥ 3")


def _legend(figure: Figure, cells: Cells, ks: list) -> None:
    schedules = dict.fromkeys((cell.mode, cell.k) for cell, _ in cells.done())
    handles = []
    for mode, k in sorted(schedules, key=lambda s: (s[0] != "sync", s[0], float(s[1]))):
        label = mode if mode == "sync" else f"{mode}, K = {style.k_label(k)}"
        handles.append(style.sample(label, **_look(mode, k, ks), markersize=4.5))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 5))


def _points(cells: Cells, curves: dict) -> pd.DataFrame:
    rows = [
        {"cell": cell.id, "split": kind, "updates": x, "pass_rate": y}
        for cell, _ in cells.done()
        for kind in ("held-out", "training")
        for x, y in curves[cell, kind]
    ]
    return pd.DataFrame(rows, columns=["cell", "split", "updates", "pass_rate"])
