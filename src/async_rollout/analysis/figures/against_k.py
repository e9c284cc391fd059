"""One quantity of finished cells by K: a panel for each asynchronous mode and algorithm, a line for each
objective or arm, and the synchronous runs at a place of their own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from async_rollout.analysis.figures import panels, style
from async_rollout.analysis.figures.drawing import Drawing, Scene, nothing
from async_rollout.analysis.figures.marks import Mark, count_text, draw_groups
from async_rollout.analysis.series import Seeds, bounds, modes, treatments, variant_of
from async_rollout.records.summary import Summary

AXIS = "K: largest staleness allowed (policy versions)"
ONE_K = "one K only: staleness_k with several values gives a curve (config/paper_tiny.yaml)"


@dataclass(frozen=True)
class Measure:
    """A quantity: its column in the csv, its axis, and how a summary gives it (None: not there)."""

    column: str
    label: str
    value: Callable[[Summary], float | None]
    low: float = 0.0  # of the axis
    high: float | None = None


def against_k(
    scene: Scene, title: str, measures: Sequence[Measure], seeds: Seeds, missing: tuple[str, str]
) -> Drawing:
    """Each measure of `seeds` in panels of its own; `missing`: what to say if there is nothing to draw."""
    seeds = [s for s in seeds if any(measure.value(s[1]) is not None for measure in measures)]
    if not seeds:
        return nothing(scene, title, *missing)
    pairs = mode_panels(scene, seeds)
    few = len({cell.k for cell, _ in seeds if cell.mode != "sync"}) == 1
    columns = max(len({mode for mode, _ in pairs}), min(len(pairs), 3) if len(measures) == 1 else 1)
    figure, axes = panels.grid(
        scene,
        title,
        len(pairs) * len(measures),
        per_row=columns,
        sharey=True if len(measures) == 1 else "row",
        note=ONE_K if few else "",
    )
    places = [(measure, *pair) for measure in measures for pair in pairs]
    for index, (panel, (measure, mode, algorithm)) in enumerate(zip(axes, places, strict=False)):
        draw_measure(panel, scene, measure, seeds, mode, algorithm)
        if index % columns == 0:
            panel.set_ylabel(measure.label)
        if index + columns >= len(axes):
            panel.set_xlabel(AXIS if columns == 1 else "K (policy versions)")
    for number, measure in enumerate(measures):
        scale(axes[number * len(pairs) : (number + 1) * len(pairs)], measure)
    looks = treatment_looks(scene, seeds)
    hollow = {"markersize": 4.5, "markerfacecolor": "white"}
    handles = [style.sample(name, **look, **hollow) for name, look in looks.items()]
    panels.legend(figure, handles, "objective, or arm (objective)" if len(handles) > 1 else "")
    return Drawing(figure, table(measures, seeds))


def scale(axes: Sequence[Axes], measure: Measure) -> None:
    """One vertical axis for panels that share it, so set once all are drawn."""
    for panel in axes:
        panel.set_ylim(measure.low, panels.end(axes, "y") if measure.high is None else measure.high)


def treatment_looks(scene: Scene, seeds: Seeds) -> dict[str, dict]:
    """A look for each objective or arm among `seeds`, the same in every figure of the sweep."""
    present = {variant_of(summary).treatment for _, summary in seeds}
    return {name: style.nth_look(i) for i, name in enumerate(treatments(scene.cells)) if name in present}


def mode_panels(scene: Scene, seeds: Seeds) -> list[tuple[str, str]]:
    """(mode, algorithm) of each panel: the asynchronous ones, or sync where there is no other."""
    found = {(cell.mode, cell.algorithm) for cell, _ in seeds}
    pairs = [(m, a) for a in sorted({a for _, a in found}) for m in modes(scene.cells) if (m, a) in found]
    return [pair for pair in pairs if pair[0] != "sync"] or pairs


def draw_measure(axes: Axes, scene: Scene, measure: Measure, seeds: Seeds, mode: str, algorithm: str) -> None:
    """One panel."""
    ks = bounds(scene.cells)
    places = [*(["sync"] if any(cell.mode == "sync" for cell, _ in seeds) else []), *ks]
    groups: dict[tuple, list[Mark]] = {}
    for cell, summary in seeds:
        value = measure.value(summary)
        if cell.algorithm == algorithm and cell.mode in (mode, "sync") and value is not None:
            place = "sync" if cell.mode == "sync" else cell.k
            groups.setdefault((variant_of(summary).treatment, place), []).append(Mark(cell, summary, value))
    looks = treatment_looks(scene, seeds)
    present = [name for name in looks if any(series == name for series, _ in groups)]
    draw_groups(axes, groups, present, places, scene.links, looks, joined=ks)
    axes.set_xticks(range(len(places)), [style.k_label(place) for place in places])
    axes.set_xlim(-0.6, len(places) - 0.4)
    axes.yaxis.set_major_formatter(style.THOUSANDS)
    if places[0] == "sync" and ks:
        axes.axvline(0.5, color=style.FAINT, linewidth=0.7)
    several = len({cell.algorithm for cell, _ in seeds}) > 1
    name = f"{mode}, {algorithm}" if several else mode
    axes.set_title(style.plain(f"{name}\n{count_text(len(found) for found in groups.values())}"))


def table(measures: Sequence[Measure], seeds: Seeds) -> pd.DataFrame:
    """A row a cell: its axes and each measure."""
    rows = [
        {
            "cell": cell.id,
            "mode": cell.mode,
            "algorithm": cell.algorithm,
            "treatment": variant_of(summary).treatment,
            "k": cell.k,
            "seed": cell.seed,
            "status": summary.status,
            **{measure.column: measure.value(summary) for measure in measures},
        }
        for cell, summary in seeds
    ]
    return pd.DataFrame(rows)
