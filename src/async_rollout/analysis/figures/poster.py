"""The sweep on one page: learning, staleness, speed, what staleness costs, the frontier, and who was busy."""

from collections.abc import Callable

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes

from async_rollout.analysis.figures import panels, style, timeline
from async_rollout.analysis.figures.against_k import draw_measure, scale, table, treatment_looks
from async_rollout.analysis.figures.curves import draw_curve, held_out
from async_rollout.analysis.figures.drawing import Drawing, Scene, new_figure, nothing
from async_rollout.analysis.figures.learning import schedule_sample
from async_rollout.analysis.figures.marks import count_text
from async_rollout.analysis.figures.pareto import draw_pareto, frame, places
from async_rollout.analysis.figures.staleness import draw_violins
from async_rollout.analysis.figures.throughput import THROUGHPUT
from async_rollout.analysis.figures.tolerance import NO_CELL, PASS_RATE, final_pass_rate
from async_rollout.analysis.series import Seeds, bounds, by_schedule, is_timed, keep, variants

TITLE = "Asynchronous reinforcement learning"
FONTS = {"font.size": 11, "axes.titlesize": 11, "axes.labelsize": 11, "xtick.labelsize": 10,
         "ytick.labelsize": 10, "legend.fontsize": 11, "legend.title_fontsize": 11}  # fmt: skip


def fig_overview_poster(scene: Scene) -> Drawing:
    """Six panels about the algorithm with most cells; what the sweep lacks is said in its panel."""
    if not scene.cells.done():
        return nothing(scene, TITLE, *NO_CELL)
    names = [cell.algorithm for cell, _ in scene.cells.done()]
    algorithm = max(sorted(set(names)), key=names.count)
    seeds = keep(scene.cells, lambda cell, _: cell.algorithm == algorithm)
    with mpl.rc_context(FONTS):
        figure = new_figure(scene, f"{TITLE} with {algorithm}", 7.4, width=13.2)
        figure.suptitle(figure.get_suptitle(), fontsize=15)
        axes = figure.subplots(2, 3)
        draw: list[Callable[[Axes, Scene, Seeds], None]] = [
            _learning,
            _staleness,
            _speed,
            _cost,
            _frontier,
            _busy,
        ]
        for letter, panel, one in zip("abcdef", axes.flat, draw, strict=True):
            one(panel, scene, seeds)
            panel.set_title(f"{letter}   {panel.get_title()}", loc="left")
            panel.set_title("")
        ks = bounds(scene.cells)
        shown = {(c.mode == "sync", c.k): (c.mode, c.k) for c, _ in seeds}
        order = sorted(shown.values(), key=lambda place: (place[0] != "sync", float(place[1])))
        looks = treatment_looks(scene, seeds).items()
        handles = [schedule_sample(mode, k, ks) for mode, k in order]
        handles += [style.sample(name, **look, markerfacecolor="white") for name, look in looks]
        panels.legend(figure, handles)
    return Drawing(figure, _points(seeds))


def _main(seeds: Seeds, *wanted: str) -> str | None:
    """The first of these modes that has a cell."""
    return next((mode for mode in wanted if any(cell.mode == mode for cell, _ in seeds)), None)


def _learning(axes: Axes, scene: Scene, seeds: Seeds) -> None:
    mode = _main(seeds, "areal", "async", "lagged", "sync")
    own = [v for v in variants(scene.cells) if v.algorithm == seeds[0][0].algorithm]
    own = [v for v in own if any(place[0] == mode for place in by_schedule(scene.cells, v))]
    variant = min(own, key=lambda v: (v.arm != "", v.objective != "decoupled"))
    schedules = by_schedule(scene.cells, variant)
    schedules = {place: group for place, group in schedules.items() if place[0] in (mode, "sync")}
    for (kind, k), group in schedules.items():
        look = style.schedule_look(kind, k, bounds(scene.cells))
        draw_curve(axes, [(c, s, held_out(s)) for c, s in group], scene.links, look)
    name = style.plain(f"learning: {mode}, {variant.treatment}")
    axes.set_title(f"{name}\n{count_text(map(len, schedules.values()))}")
    axes.set_xlabel("updates")
    axes.set_ylabel("held-out pass rate")
    axes.set_ylim(-0.02, 1.02)


def _staleness(axes: Axes, scene: Scene, seeds: Seeds) -> None:
    mode = _main(seeds, "areal", "async", "lagged", "sync")
    groups: dict[int | str, Seeds] = {}
    for cell, summary in sorted(seeds, key=lambda seed: float(seed[0].k)):
        if cell.mode == mode and sum(summary.staleness_histogram.trained.values()):
            groups.setdefault(cell.k, []).append((cell, summary))
    if not groups:
        _missing(axes, "no token was trained")
        return
    draw_violins(axes, scene, groups, style.MODE_COLORS[mode])
    axes.set_title(f"age of trained tokens: {mode}\ndots: mean of one cell")
    axes.set_xlabel("K (policy versions)")
    axes.set_ylabel("age (policy versions)")


def _speed(axes: Axes, scene: Scene, seeds: Seeds) -> None:
    timed = [seed for seed in seeds if is_timed(*seed)]
    mode = _main(timed, "areal", "async", "sync")
    if mode is None:
        _missing(axes, "speed: no cell of mode sync, async or areal")
        return
    draw_measure(axes, scene, THROUGHPUT, timed, mode, seeds[0][0].algorithm)
    scale([axes], THROUGHPUT)
    axes.set_title(f"speed: {axes.get_title()}")
    axes.set_xlabel("K (policy versions)")
    axes.set_ylabel(THROUGHPUT.label)


def _cost(axes: Axes, scene: Scene, seeds: Seeds) -> None:
    mode = _main(seeds, "lagged", "areal", "async", "sync")
    seeds = [seed for seed in seeds if final_pass_rate(seed[1]) is not None]
    if not seeds:
        _missing(axes, "pass rate: no cell was evaluated")
        return
    draw_measure(axes, scene, PASS_RATE, seeds, mode, seeds[0][0].algorithm)
    scale([axes], PASS_RATE)
    axes.set_title(f"pass rate of the last version: {axes.get_title()}")
    axes.set_xlabel("K (policy versions)")
    axes.set_ylabel(PASS_RATE.label)


def _frontier(axes: Axes, scene: Scene, seeds: Seeds) -> None:
    found = places([s for s in seeds if is_timed(*s) and final_pass_rate(s[1]) is not None])
    if not found:
        _missing(axes, "frontier: no cell of mode sync, async or areal")
        return
    draw_pareto(axes, scene, found, treatment_looks(scene, seeds))
    frame([axes])
    axes.set_title(f"speed and pass rate; ringed: frontier\n{count_text(len(p.seeds) for p in found)}")
    axes.set_xlabel(THROUGHPUT.label)
    axes.set_ylabel(PASS_RATE.label)


def _busy(axes: Axes, scene: Scene, seeds: Seeds) -> None:
    mode = _main(seeds, "areal", "async", "lagged", "sync")
    chosen = timeline.first_cell(scene, mode)
    if chosen is None:
        _missing(axes, "no sound trace.json: published results leave it out")
        return
    cell, _, spans = chosen
    timeline.chart(axes, spans, scene.links[cell])
    axes.set_xlim(0, max(span.end for span in spans))
    axes.set_title(
        f"{style.schedule_label(cell.mode, cell.k)}: who was busy when\nseed {cell.seed}, the first updates"
    )
    axes.set_xlabel("seconds")
    samples = timeline.samples([span.name for span in spans])
    axes.legend(handles=samples, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, handlelength=1)


def _missing(axes: Axes, why: str) -> None:
    axes.axis("off")
    axes.text(0.5, 0.5, why, ha="center", transform=axes.transAxes, color=style.FAINT)


def _points(seeds: Seeds) -> pd.DataFrame:
    points = table([THROUGHPUT, PASS_RATE], seeds)
    points["staleness_mean"] = [summary.staleness_mean for _, summary in seeds]
    return points
