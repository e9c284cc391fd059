"""Seeds as points, and what three and more of them support: a mean with its 95 % interval.

A collapsed cell has a red cross on its point.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from async_rollout.analysis.figures import style
from async_rollout.analysis.statistics import CLAIM_N, estimate
from async_rollout.config.cells import Cell
from async_rollout.records.summary import Summary


@dataclass(frozen=True)
class Mark:
    """One cell's value. `known` is False for one that stands for "more than this": it has no mean."""

    cell: Cell
    summary: Summary
    value: float
    known: bool = True


Groups = Mapping[tuple[Hashable, Hashable], Sequence[Mark]]  # by (series, place)


def count_text(counts: Iterable[int]) -> str:
    """`n = 2: no interval`: seeds behind a mean, and whether it has an interval."""
    found = sorted(set(counts))
    if not found:
        return "no cell"
    n = f"n = {found[0]}" if len(found) == 1 else f"n = {found[0]}–{found[-1]}"
    if found[-1] < CLAIM_N:
        return f"{n}: no interval"
    return f"{n}, 95 % interval" + ("" if found[0] >= CLAIM_N else f" if n ≥ {CLAIM_N}")


def points(axes: Axes, xs: list, ys: list, marks: Sequence[Mark], links: Mapping, look: dict) -> None:
    """A small hollow point for each cell, which leads to the cell."""
    shape = {"marker": look["marker"], "s": 13, "linewidth": 0.8, "zorder": 3}
    color = {"color": look["color"]} if look["marker"] == "x" else {"facecolor": "white"}
    axes.scatter(xs, ys, **shape, **({"edgecolor": look["color"]} | color if "facecolor" in color else color)
                 ).set_urls([links[mark.cell] for mark in marks])  # fmt: skip
    bad = [i for i, mark in enumerate(marks) if mark.summary.status == "collapsed"]
    if bad:
        cross(axes, [xs[i] for i in bad], [ys[i] for i in bad])


def cross(axes: Axes, xs: list, ys: list) -> None:
    """Collapsed cells."""
    axes.scatter(xs, ys, marker="x", s=34, linewidth=1.3, color=style.BAD, zorder=5)


def shifts(count: int, width: float = 0.5) -> list[float]:
    """Places side by side around 0."""
    step = min(0.16, width / max(count, 1))
    return [step * (i - (count - 1) / 2) for i in range(count)]


def draw_groups(
    axes: Axes,
    groups: Groups,
    series: Sequence[Hashable],
    places: Sequence[Hashable],
    links: Mapping[Cell, str],
    looks: Mapping[Hashable, dict],
    *,
    upright: bool = True,
    joined: Iterable[Hashable] = (),
) -> None:
    """Each group's points and its mean, side by side by series around its place (0, 1, ...).

    `upright`: places along x; else along y. The means at the places `joined` make a line.
    """
    joined = set(joined)
    for shift, name in zip(shifts(len(series)), series, strict=True):
        look, line = looks[name], []
        for number, place in enumerate(places):
            marks = groups.get((name, place), ())
            if not marks:
                continue
            at, values = number + shift, [mark.value for mark in marks]
            around = [at + 0.2 * offset for offset in shifts(len(marks), 0.8 / len(series))]
            xs, ys = (around, values) if upright else (values, around)
            points(axes, xs, ys, marks, links, look)
            if not all(mark.known for mark in marks):
                continue
            mean = estimate(values)
            if place in joined:
                line.append((at, mean.mean))
            if mean.n >= CLAIM_N:
                _interval(axes, at, mean, look, upright)
        if line:
            axes.plot(*zip(*line, strict=True), color=look["color"], linestyle=look["linestyle"],
                      linewidth=1.3, alpha=0.85)  # fmt: skip


def _interval(axes: Axes, at: float, mean, look: dict, upright: bool) -> None:
    x, y = (at, mean.mean) if upright else (mean.mean, at)
    half = (mean.high - mean.low) / 2
    error = {"yerr": half} if upright else {"xerr": half}
    axes.errorbar(
        x,
        y,
        **error,
        marker=look["marker"],
        color=look["color"],
        markersize=4.5,
        elinewidth=1,
        capsize=2.5,
        zorder=4,
    )
