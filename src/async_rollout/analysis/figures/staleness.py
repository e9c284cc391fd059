"""How old trained tokens were."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.figures import style
from async_rollout.analysis.series import modes
from async_rollout.analysis.statistics import histogram_mean, histogram_shares
from async_rollout.config.cells import Cell
from async_rollout.records.summary import Summary

TITLE = "Staleness of trained tokens"
BOUND = "#b00020"


def fig_staleness_violin(cells: Cells, links: Mapping[Cell, str]) -> style.Drawing:
    """A violin of steps for each (K, mode): ages are whole numbers, so style.nothing is smoothed."""
    groups: dict[tuple, list] = {}
    for cell, summary in cells.done():
        if sum(summary.staleness_histogram.trained.values()):
            groups.setdefault((cell.k, cell.mode), []).append((cell, summary))
    if not groups:
        return style.nothing(cells, TITLE, "no finished cell has trained a token")
    ks = sorted({k for k, _ in groups}, key=float)
    drawn = [(k, mode) for k in ks for mode in modes(cells) if (k, mode) in groups]
    figure = style.new_figure(max(6.0, 0.95 * len(drawn) + 1.5), 4.2)
    style.heading(figure, TITLE, cells)
    axes = figure.add_subplot()
    labels, rows = [], []
    for place, (k, mode) in enumerate(drawn):
        histograms = [summary.staleness_histogram.trained for _, summary in groups[k, mode]]
        _violin(axes, place, histogram_shares(histograms), style.MODE_COLORS[mode])
        _means(axes, place, groups[k, mode], links)
        if k != "inf":
            axes.hlines(
                int(k) + 0.5, place - 0.46, place + 0.46, colors=BOUND, linestyles=(0, (4, 2)), linewidth=1.1
            )
        labels.append(f"K = {style.k_label(k)}\n{mode}\nn = {len(histograms)}")
        rows += [_row(cell, summary) for cell, summary in groups[k, mode]]
    axes.set_xticks(range(len(drawn)), labels)
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.7, len(drawn) - 0.3)
    axes.set_ylabel("age of a trained token (policy versions)")
    axes.yaxis.get_major_locator().set_params(integer=True)
    bound = style.sample("bound: no token older than K", color=BOUND, linestyle=(0, (4, 2)))
    mean = style.sample(
        "mean of one cell",
        color="none",
        marker="o",
        markerfacecolor="white",
        markeredgecolor="black",
        markersize=4.5,
    )
    figure.legend(handles=[bound, mean], loc="outside lower center", ncols=2)
    return style.Drawing(figure, pd.DataFrame(rows))


def _violin(axes: Axes, place: float, shares: dict[int, float], color: str) -> None:
    """Steps of height 1 around each age, as wide as its share."""
    widest = max(shares.values())
    for age, share in shares.items():
        half = 0.44 * share / widest
        axes.fill_betweenx(
            [age - 0.5, age + 0.5],
            place - half,
            place + half,
            facecolor=color,
            alpha=0.45,
            edgecolor=color,
            linewidth=0.8,
        )


def _means(axes: Axes, place: float, group: list, links: Mapping[Cell, str]) -> None:
    """A dot for each cell, side by side."""
    step = 0.7 / max(len(group), 6)
    xs = [place + (i - (len(group) - 1) / 2) * step for i in range(len(group))]
    ys = [histogram_mean(summary.staleness_histogram.trained) for _, summary in group]
    style.clear_points(
        axes,
        xs,
        ys,
        [links[cell] for cell, _ in group],
        s=12,
        facecolor="white",
        edgecolor="black",
        linewidth=0.8,
        zorder=3,
    )


def _row(cell: Cell, summary: Summary) -> dict:
    histogram = summary.staleness_histogram.trained
    return {
        "cell": cell.id,
        "k": cell.k,
        "mode": cell.mode,
        "mean_age": histogram_mean(histogram),
        "max_age": max(int(age) for age, count in histogram.items() if count),
        "trained_tokens": sum(histogram.values()),
    }
