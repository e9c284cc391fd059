"""How long until the held-out pass rate was at the threshold; and who never got there."""

import math

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from async_rollout.analysis.figures import style
from async_rollout.analysis.figures.against_k import table, treatment_looks
from async_rollout.analysis.figures.drawing import Drawing, Scene, nothing
from async_rollout.analysis.figures.marks import Mark
from async_rollout.analysis.figures.rows import Panel, group, row_panels
from async_rollout.analysis.figures.tolerance import NO_CELL
from async_rollout.analysis.series import is_timed, variant_of
from async_rollout.config.cells import Cell
from async_rollout.records.summary import Summary

TITLE = "Time to threshold"
_NOBODY = 1.0  # the edge where nobody got there


def reached(summary: Summary, threshold: float) -> tuple[float, float]:
    """(updates, seconds) of the first evaluation at or above the threshold; infinite if there is none."""
    for point in sorted(summary.eval_pass_rate, key=lambda point: point.version):
        if point.sampled >= threshold:
            return float(point.updates), point.seconds
    return math.inf, math.inf


def fig_time_to_threshold(scene: Scene) -> Drawing:
    """Updates and seconds to the threshold by mode and K; `not reached` stands at the right edge."""
    seeds = [(cell, summary) for cell, summary in scene.cells.done() if summary.eval_pass_rate]
    if not seeds:
        return nothing(scene, TITLE, *NO_CELL)
    times = {cell: reached(summary, scene.threshold) for cell, summary in seeds}
    found, edges = [], []
    timed = {cell for cell, summary in seeds if is_timed(cell, summary)}
    units = {"updates": times.keys(), "seconds": timed} if timed else {"updates": times.keys()}
    for algorithm in sorted({cell.algorithm for cell, _ in seeds}):
        for number, (unit, counted) in enumerate(units.items()):
            own = [(c, s) for c, s in seeds if c.algorithm == algorithm and c in counted]
            edge = _edge([times[cell][number] for cell, _ in own])
            marks = [_mark(cell, summary, times[cell][number], edge) for cell, summary in own]
            found.append(Panel(algorithm, f"{unit} until pass rate {scene.threshold:g}", group(marks)))
            edges.append(edge if any(not mark.known for _, mark in marks) else None)
    figure, axes = row_panels(scene, TITLE, found, treatment_looks(scene, seeds), per_row=len(units))
    for panel, edge in zip(axes, edges, strict=False):
        if edge is not None:
            _never(panel, edge)
    points = table([], seeds)
    points["updates"] = [times[cell][0] for cell, _ in seeds]
    points["seconds"] = [times[cell][1] if cell in timed else math.nan for cell, _ in seeds]
    return Drawing(figure, points)


def _mark(cell: Cell, summary: Summary, value: float, edge: float) -> tuple[str, Mark]:
    known = math.isfinite(value)
    return variant_of(summary).treatment, Mark(cell, summary, value if known else edge, known)


def _edge(values: list[float]) -> float:
    """Where those stand that never got there: right of all others."""
    return 1.15 * max((value for value in values if math.isfinite(value)), default=0.0) or _NOBODY


def _never(axes: Axes, edge: float) -> None:
    """The place of those that did not reach the threshold."""
    ticks = MaxNLocator(3).tick_values(0, 0.8 * edge) if edge > _NOBODY else [0]
    ticks = [tick for tick in ticks if tick < 0.72 * edge]
    axes.set_xticks([*ticks, edge], [*(style.THOUSANDS(tick) for tick in ticks), "not reached"])
    axes.axvline(0.935 * edge, color=style.FAINT, linewidth=0.7)
    axes.set_xlim(-0.015 * edge, 1.08 * edge)
