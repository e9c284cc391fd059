"""How full the pipeline was: groups that wait for the trainer and groups that are being sampled."""

import pandas as pd
from matplotlib.axes import Axes

from async_rollout.analysis.figures import panels, style
from async_rollout.analysis.figures.drawing import Drawing, Scene, nothing
from async_rollout.analysis.figures.marks import cross
from async_rollout.analysis.series import Seeds, schedules, variant_of, variants
from async_rollout.config.cells import Cell
from async_rollout.records.summary import Summary

TITLE = "Groups in the pipeline at each commit"
MISSING = (
    "no finished cell of mode async or areal",
    "modes of one schedule hold no queue; modes: [areal] has one (config/demo.yaml)",
)
WAITING, RUNNING = style.COLORS[0], style.COLORS[4]


def queue_depth_traces(scene: Scene) -> Drawing:
    """Waiting and running groups, stacked, over the run: a panel for each mode and K, one cell in each."""
    chosen = representatives(scene)
    if not chosen:
        return nothing(scene, TITLE, *MISSING)
    figure, axes = panels.grid(scene, TITLE, len(chosen), sharey=False, height=1.7)
    for panel, (cell, summary) in zip(axes, chosen, strict=False):
        _stack(panel, summary)
        bound = _bound(summary)
        if bound is not None:
            panel.axhline(bound, color=style.BAD, linestyle=style.LINES[1], linewidth=1)
        if summary.status == "collapsed":
            cross(panel, [summary.queue_depth_trace.seconds[-1]], [0])
        panel.set_title(style.plain(f"{style.schedule_label(cell.mode, cell.k)}\n{_said(cell, summary)}"))
        panel.title.set_url(scene.links[cell])
        panel.set_ylim(0, None if bound is None else 1.1 * bound)
    axes[0].set_xlim(0, max(summary.queue_depth_trace.seconds[-1] for _, summary in chosen))
    panels.label_edges(axes, "seconds of the run", "prompt groups")
    handles = [
        style.sample("waiting for the trainer", color=WAITING, linestyle="-", linewidth=5),
        style.sample("being sampled or judged", color=RUNNING, linestyle="-", linewidth=5),
    ]
    if any(_bound(summary) is not None for _, summary in chosen):
        limit = {"color": style.BAD, "linestyle": style.LINES[1]}
        handles.append(style.sample("most that K admits: (K + 1) · B", **limit))
    panels.legend(figure, handles)
    return Drawing(figure, _points(chosen))


def representatives(scene: Scene) -> Seeds:
    """The first cell of each asynchronous mode and K, of the first variant that has one."""
    order = {variant: number for number, variant in enumerate(variants(scene.cells))}
    chosen = []
    for mode, k in schedules(scene.cells):
        found = [s for s in scene.cells.done() if (s[0].mode, s[0].k) == (mode, k)]
        found = [s for s in found if mode in ("async", "areal") and s[1].queue_depth_trace.seconds]
        if found:
            chosen.append(min(found, key=lambda s: (s[1].status, order[variant_of(s[1])], s[0].seed)))
    return chosen


def _stack(axes: Axes, summary: Summary) -> None:
    trace = summary.queue_depth_trace
    total = [waiting + running for waiting, running in zip(trace.waiting, trace.running, strict=True)]
    axes.fill_between(trace.seconds, 0, trace.waiting, step="post", color=WAITING, linewidth=0)
    axes.fill_between(trace.seconds, trace.waiting, total, step="post", color=RUNNING, linewidth=0)
    if not any(total):
        axes.text(0.5, 0.1, "0 at every commit", ha="center", transform=axes.transAxes, color=style.FAINT)


def _bound(summary: Summary) -> int | None:
    """Groups admitted and not yet trained number at most (K + 1) · B."""
    groups = summary.config.get("batch", {}).get("groups")
    return None if summary.k == "inf" or groups is None else (summary.k + 1) * groups


def _said(cell: Cell, summary: Summary) -> str:
    return f"{cell.algorithm}, {variant_of(summary).treatment}, seed {cell.seed}"


def _points(chosen: Seeds) -> pd.DataFrame:
    frames = [
        pd.DataFrame({"cell": cell.id, **summary.queue_depth_trace.model_dump()}) for cell, summary in chosen
    ]
    return pd.concat(frames, ignore_index=True)
