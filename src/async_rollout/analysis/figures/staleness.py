"""How old trained tokens were."""

from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes

from async_rollout.analysis.figures import panels, style
from async_rollout.analysis.figures.drawing import Drawing, Scene, nothing
from async_rollout.analysis.figures.marks import Mark, points, shifts
from async_rollout.analysis.series import Seeds, modes
from async_rollout.analysis.statistics import histogram_mean, histogram_shares
from async_rollout.config.cells import Cell
from async_rollout.records.summary import Summary

TITLE = "Staleness of trained tokens"
MEAN = {"marker": "o", "color": "black"}


def fig_staleness_violin(scene: Scene) -> Drawing:
    """A panel for each mode, a violin of steps for each K: ages are whole numbers, nothing is smoothed."""
    groups: dict[tuple, Seeds] = {}
    for cell, summary in scene.cells.done():
        if sum(summary.staleness_histogram.trained.values()):
            groups.setdefault((cell.mode, cell.k), []).append((cell, summary))
    if not groups:
        missing = "no finished cell has trained a token"
        return nothing(scene, TITLE, missing, "any finished cell gives this figure (config/demo.yaml)")
    shown = [mode for mode in modes(scene.cells) if any(mode == m for m, _ in groups)]
    widths = [max(sum(m == mode for m, _ in groups), 1.3) for mode in shown]
    figure, axes = panels.in_one_row(scene, TITLE, widths)
    for panel, mode in zip(axes, shown, strict=True):
        own = {k: groups[mode, k] for k in sorted((k for m, k in groups if m == mode), key=float)}
        draw_violins(panel, scene, own, style.MODE_COLORS.get(mode, style.COLORS[3]))
        panel.set_title(f"{mode}\n{_counts(map(len, own.values()))}")
        panel.set_xlabel("K (versions)")
    axes[0].set_ylabel("age of a trained token (policy versions)")
    white = {"markerfacecolor": "white", "markeredgecolor": "black", "markersize": 4.5}
    panels.legend(
        figure,
        [
            style.sample("mean of one cell", marker="o", **white),
            style.sample("bound: no token older than K", color=style.BAD, linestyle=(0, (4, 2))),
        ],
    )
    return Drawing(figure, pd.DataFrame([_row(*seed) for group in groups.values() for seed in group]))


def _counts(sizes: Iterable[int]) -> str:
    """Cells of one K, whatever they learn."""
    found = sorted(set(sizes))
    return f"{found[0]} cells" if len(found) == 1 else f"{found[0]} to {found[-1]} cells"


def draw_violins(axes: Axes, scene: Scene, groups: dict[int | str, Seeds], color: str) -> None:
    """A violin for each K, its bound, and the mean of each cell."""
    for place, (k, seeds) in enumerate(groups.items()):
        shares = histogram_shares([summary.staleness_histogram.trained for _, summary in seeds])
        _violin(axes, place, shares, color)
        marks = [Mark(c, s, histogram_mean(s.staleness_histogram.trained)) for c, s in seeds]
        xs = [place + shift for shift in shifts(len(marks), 0.7)]
        points(axes, xs, [mark.value for mark in marks], marks, scene.links, MEAN)
        if k != "inf":
            axes.hlines(int(k) + 0.5, place - 0.46, place + 0.46, colors=style.BAD, linestyles=(0, (4, 2)),
                        linewidth=1.1)  # fmt: skip
    axes.set_xticks(range(len(groups)), [style.k_label(k) for k in groups])
    axes.set_xlim(-0.7, len(groups) - 0.3)
    axes.grid(visible=False, axis="x")
    axes.yaxis.get_major_locator().set_params(integer=True)


def _violin(axes: Axes, place: float, shares: dict[int, float], color: str) -> None:
    """Steps of height 1 around each age, as wide as its share; one path, so that many ages stay small."""
    widest = max(shares.values())
    ages = [age + edge for age in shares for edge in (-0.5, 0.5)]
    half = [0.44 * share / widest for share in shares.values() for _ in range(2)]
    left, right = [place - h for h in half], [place + h for h in half]
    axes.fill_betweenx(ages, left, right, facecolor=color, alpha=0.45, edgecolor=color, linewidth=0.8)


def _row(cell: Cell, summary: Summary) -> dict:
    histogram = summary.staleness_histogram.trained
    return {
        "cell": cell.id,
        "mode": cell.mode,
        "k": cell.k,
        "mean_age": histogram_mean(histogram),
        "max_age": max(int(age) for age, count in histogram.items() if count),
        "trained_tokens": sum(histogram.values()),
    }
