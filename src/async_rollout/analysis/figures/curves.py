"""What a cell went through, as (updates, value) pairs, and how seeds of it are drawn."""

import math
from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.figures.marks import cross
from async_rollout.analysis.statistics import CLAIM_N, estimate
from async_rollout.config.cells import Cell
from async_rollout.records.cells import read_metrics
from async_rollout.records.rows import MetricsRow
from async_rollout.records.summary import Summary

WINDOWS = 12  # of training updates along the axis
Curve = list[tuple[float, float]]


def held_out(summary: Summary) -> Curve:
    """Held-out pass rate (sampled) by updates."""
    points = sorted(summary.eval_pass_rate, key=lambda point: point.version)
    return [(float(point.updates), point.sampled) for point in points]


def windowed(cells: Cells, cell: Cell, value: Callable[[Sequence[MetricsRow]], float | None]) -> Curve:
    """`value` of each of `WINDOWS` equal windows of commits, at the middle of the window; empty if the cell
    has no sound metrics.jsonl, which the checks tell."""
    try:
        rows = read_metrics(cells.directory(cell))
    except (FileNotFoundError, ValueError):
        return []
    size = max(1, math.ceil(len(rows) / WINDOWS))
    windows = [rows[start : start + size] for start in range(0, len(rows), size)]
    curve = [((window[0].version + window[-1].version) / 2, value(window)) for window in windows]
    return [(x, y) for x, y in curve if y is not None]


def training_pass_rate(rows: Sequence[MetricsRow]) -> float | None:
    """Solved ÷ judged samples; None if none was judged."""
    judged = sum(row.correct + row.incorrect for row in rows)
    return sum(row.correct for row in rows) / judged if judged else None


def training_reward(rows: Sequence[MetricsRow]) -> float | None:
    """Mean reward of trained samples."""
    samples = sum(row.trained_samples for row in rows)
    return sum(row.reward_mean * row.trained_samples for row in rows) / samples if samples else None


def draw_curve(
    axes: Axes, seeds: Sequence[tuple[Cell, Summary, Curve]], links: Mapping[Cell, str], look: dict
) -> None:
    """The mean of three seeds and more with its interval as a band, or each seed by itself.

    Seeds that ended at different updates, as collapsed ones do, have no mean: who is left over
    would make it.
    """
    seeds = [seed for seed in seeds if seed[2]]
    xs = [[x for x, _ in curve] for *_, curve in seeds]
    line = {"color": look["color"], "linestyle": look["linestyle"]}
    if len(seeds) >= CLAIM_N and all(x == xs[0] for x in xs):
        columns = zip(*([y for _, y in curve] for *_, curve in seeds), strict=True)
        means = [estimate(column) for column in columns]
        axes.fill_between(xs[0], [m.low for m in means], [m.high for m in means], color=look["color"],
                          alpha=0.14, linewidth=0)  # fmt: skip
        axes.plot(
            xs[0], [m.mean for m in means], **line, marker=look["marker"], markersize=3.2, linewidth=1.3
        )
        # Where each seed ended, for its link. All in one: each call looks at all that is drawn already.
        ends = axes.scatter(*zip(*(curve[-1] for *_, curve in seeds), strict=True), s=40, alpha=0)
        ends.set_urls([links[cell] for cell, *_ in seeds])
    else:
        for (cell, _, curve), x in zip(seeds, xs, strict=True):
            ys = [y for _, y in curve]
            axes.plot(x, ys, **line, linewidth=1.1, alpha=0.85)
            points = axes.scatter(x, ys, s=10, marker=look["marker"], color=look["color"], zorder=3)
            points.set_urls([links[cell]] * len(x))
    collapsed = [curve[-1] for _, summary, curve in seeds if summary.status == "collapsed"]
    if collapsed:
        cross(axes, *map(list, zip(*collapsed, strict=True)))
