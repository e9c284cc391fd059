"""Learning curves: a panel for each mode, algorithm and objective or arm, a line for each K."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from async_rollout.analysis.figures import panels, style
from async_rollout.analysis.figures.curves import (
    Curve,
    draw_curve,
    held_out,
    training_pass_rate,
    training_reward,
    windowed,
)
from async_rollout.analysis.figures.drawing import Drawing, Scene, nothing
from async_rollout.analysis.figures.marks import count_text
from async_rollout.analysis.figures.tolerance import NO_CELL
from async_rollout.analysis.series import Seeds, Variant, bounds, by_schedule, modes, variants
from async_rollout.config.cells import Cell
from async_rollout.records.summary import Summary

Source = Callable[[Cell, Summary], Curve]
Panel = tuple[str, dict[tuple, Seeds]]  # title, seeds by (mode, K)


def fig_pass_rate_curves(scene: Scene) -> Drawing:
    """Pass rate on held-out tasks and on training samples."""
    kinds = {
        "held-out": lambda _, summary: held_out(summary),
        "training": lambda cell, _: windowed(scene.cells, cell, training_pass_rate),
    }
    return learning(scene, "Pass rate against updates", all_panels(scene), kinds, "pass rate", NO_CELL)


def fig_reward_curves(scene: Scene) -> Drawing:
    """Mean reward of training samples over windows of updates."""
    missing = (
        "no finished cell has a sound metrics.jsonl",
        "each run writes it beside its summary.json: keep both, or run the cell again",
    )
    kinds = {"training": lambda cell, _: windowed(scene.cells, cell, training_reward)}
    return learning(scene, "Training reward against updates", all_panels(scene), kinds, "reward", missing)


def fig5a_naive_learning_curves(scene: Scene) -> Drawing:
    """Objective `behavior`, which clips against the stale policy (AReaL, Fig. 5a)."""
    missing = (
        "no finished cell has objective behavior (naive PPO)",
        "arms: {behavior: {objective.name: behavior}} has it (config/demo.yaml, config/paper_tiny.yaml)",
    )
    return _held_out(scene, "Learning with naive PPO", lambda v: v.objective == "behavior", missing)


def fig5b_decoupled_learning_curves(scene: Scene) -> Drawing:
    """Objective `decoupled` of the base arm (AReaL, Fig. 5b)."""
    missing = (
        "no finished cell of the base arm has objective decoupled",
        "decoupled: [1] has it (config/demo.yaml, config/paper_tiny.yaml)",
    )
    wanted = lambda v: v.objective == "decoupled" and not v.arm  # noqa: E731
    return _held_out(scene, "Learning with the decoupled objective", wanted, missing)


def _held_out(scene: Scene, title: str, wanted: Callable[[Variant], bool], missing: tuple) -> Drawing:
    kinds = {"held-out": lambda _, summary: held_out(summary)}
    return learning(scene, title, all_panels(scene, wanted), kinds, "held-out pass rate", missing)


def all_panels(scene: Scene, wanted: Callable[[Variant], bool] = lambda _: True) -> list[Panel]:
    """A panel for each variant and asynchronous mode, with the synchronous runs in each."""
    found = []
    everyone = variants(scene.cells)
    for variant in filter(wanted, everyone):
        schedules = by_schedule(scene.cells, variant)
        apart = [m for m in modes(scene.cells) if m != "sync" and any(mode == m for mode, _ in schedules)]
        for mode in apart or ["sync"]:
            shown = {place: seeds for place, seeds in schedules.items() if place[0] in (mode, "sync")}
            found.append((f"{mode}, {variant.label(everyone)}", shown))
    return found


def learning(
    scene: Scene, title: str, found: Sequence[Panel], kinds: dict[str, Source], label: str, missing: tuple
) -> Drawing:
    """The panels, several kinds of curve side by side; one point a row in the csv."""
    seeds = dict.fromkeys(seed[0] for _, schedules in found for group in schedules.values() for seed in group)
    summaries = scene.cells.summaries
    curves = {(kind, cell): source(cell, summaries[cell]) for kind, source in kinds.items() for cell in seeds}
    if not any(curves.values()):
        return nothing(scene, title, *missing)
    shown = found[: panels.MOST // len(kinds)]
    note = "" if shown == found else f"{len(shown)} of {len(found)} panels drawn, all points are in the csv"
    columns = len(kinds) if len(kinds) > 1 else min(len(shown), 3)
    figure, axes = panels.grid(scene, title, len(shown) * len(kinds), per_row=columns, note=note)
    ks = bounds(scene.cells)
    places = [(kind, *panel) for panel in shown for kind in kinds]
    for panel, (kind, name, schedules) in zip(axes, places, strict=True):
        for (mode, k), group in schedules.items():
            drawn = [(cell, summary, curves[kind, cell]) for cell, summary in group]
            draw_curve(panel, drawn, scene.links, style.schedule_look(mode, k, ks))
        heading = f"{name}: {kind}" if len(kinds) > 1 else name
        panel.set_title(style.plain(f"{heading}\n{count_text(map(len, schedules.values()))}"))
    if "rate" in label:
        axes[0].set_ylim(-0.02, 1.02)
    panels.label_edges(axes, "updates", label, columns)
    legend = sorted({place for _, schedules in shown for place in schedules}, key=_order)
    panels.legend(figure, [schedule_sample(mode, k, ks) for mode, k in _merged(legend)])
    return Drawing(figure, curve_points(curves, summaries))


def schedule_sample(mode: str, k: int | str, ks: list):
    """The entry of a legend for a bound K, whatever the mode; or for sync."""
    label = "sync" if mode == "sync" else f"K = {style.k_label(k)}"
    return style.sample(label, **style.schedule_look(mode, k, ks), markersize=4.5)


def _merged(places: list) -> list:
    """One place a K: panels tell the modes."""
    return list({(mode == "sync", k): (mode, k) for mode, k in places}.values())


def _order(place: tuple) -> tuple:
    return place[0] != "sync", float(place[1]), place[0]


def curve_points(curves: dict[tuple[str, Cell], Curve], summaries: Mapping[Cell, Summary]) -> pd.DataFrame:
    """A row a point of each curve."""
    rows = [
        {"cell": cell.id, "split": kind, "updates": x, "value": y, "status": summaries[cell].status}
        for (kind, cell), curve in curves.items()
        for x, y in curve
    ]
    return pd.DataFrame(rows, columns=["cell", "split", "updates", "value", "status"])
