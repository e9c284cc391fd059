"""One quantity of finished cells by schedule: a row for each mode and K, a point for each cell."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from async_rollout.analysis.figures import panels, style
from async_rollout.analysis.figures.drawing import Scene
from async_rollout.analysis.figures.marks import Groups, Mark, count_text, draw_groups
from async_rollout.analysis.series import schedules


@dataclass(frozen=True)
class Panel:
    """What one panel shows: its title, its axis, and marks by (series, (mode, K))."""

    title: str
    label: str
    groups: Groups
    counted: bool = True  # seeds are told in the title


def row_panels(
    scene: Scene, title: str, found: Sequence[Panel], looks: Mapping[Hashable, dict], *, note: str = "",
    per_row: int = 2, sharex: bool | str = False, legend: str = "objective, or arm (objective)",
) -> tuple[Figure, list[Axes]]:  # fmt: skip
    """Panels that share their rows. A look for each series; the legend says what series are."""
    used = {place for panel in found for _, place in panel.groups}
    places = [place for place in schedules(scene.cells) if place in used][::-1]  # sync on top
    series = list(looks)
    height = 1.15 + len(places) * max(0.26, 0.1 * len(series))
    columns = min(len(found), per_row)
    figure, axes = panels.grid(
        scene, title, len(found), height=height, per_row=columns, sharex=sharex, sharey=True, note=note
    )
    for index, (panel, content) in enumerate(zip(axes, found, strict=False)):
        draw_groups(panel, content.groups, series[::-1], places, scene.links, looks, upright=False)
        counts = f"\n{count_text(map(len, content.groups.values()))}" if content.counted else ""
        panel.set_title(style.plain(content.title + counts))
        if not sharex or index + columns >= len(axes):
            panel.set_xlabel(content.label)
        panel.set_yticks(range(len(places)), [style.schedule_label(*place) for place in places])
        panel.set_ylim(-0.6, len(places) - 0.4)
        panel.xaxis.set_major_formatter(style.THOUSANDS)
        for edge in range(len(places) - 1):
            if places[edge][0] != places[edge + 1][0]:
                panel.axhline(edge + 0.5, color=style.FAINT, linewidth=0.7)
    for panel in axes:
        right = panels.end(axes if sharex else [panel], "x")
        panel.set_xlim(-0.015 * right, right)
    shape = {"markersize": 4.5, "markerfacecolor": "white"}
    handles = [
        style.sample(str(name), **look | shape | {"linestyle": "none"}) for name, look in looks.items()
    ]
    panels.legend(figure, handles, legend if len(handles) > 1 else "")
    return figure, axes


def group(marks: Sequence[tuple[Hashable, Mark]]) -> dict[tuple, list[Mark]]:
    """Marks with their series, by (series, (mode, K))."""
    groups: dict[tuple, list[Mark]] = {}
    for series, mark in marks:
        groups.setdefault((series, (mark.cell.mode, mark.cell.k)), []).append(mark)
    return groups
