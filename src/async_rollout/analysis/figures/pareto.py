"""Speed against what was learned, and the schedules that no other beats in both."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from async_rollout.analysis.figures import panels, style
from async_rollout.analysis.figures.against_k import table, treatment_looks
from async_rollout.analysis.figures.drawing import Drawing, Scene, nothing
from async_rollout.analysis.figures.learning import schedule_sample
from async_rollout.analysis.figures.marks import count_text, cross
from async_rollout.analysis.figures.throughput import THROUGHPUT, UNTIMED
from async_rollout.analysis.figures.tolerance import PASS_RATE, final_pass_rate
from async_rollout.analysis.series import Seeds, bounds, is_timed, keep, variant_of
from async_rollout.analysis.statistics import CLAIM_N, Estimate, estimate

TITLE = "Throughput against pass rate"


@dataclass(frozen=True)
class Place:
    """Where the seeds of one mode, K and treatment stand together."""

    mode: str
    k: int | str
    treatment: str
    speed: Estimate
    rate: Estimate
    seeds: Seeds

    @property
    def name(self) -> str:
        """As the legend has it."""
        return f"{style.schedule_label(self.mode, self.k)}, {self.treatment}"


def fig_pareto(scene: Scene) -> Drawing:
    """A panel for each algorithm: trained tokens a second along x, held-out pass rate along y."""
    seeds = keep(scene.cells, lambda c, s: is_timed(c, s) and final_pass_rate(s) is not None)
    if not seeds:
        return nothing(scene, TITLE, *UNTIMED)
    algorithms = sorted({cell.algorithm for cell, _ in seeds})
    columns = min(len(algorithms), 2)
    figure, axes = panels.grid(scene, TITLE, len(algorithms), height=2.4, per_row=columns)
    looks, fronts = treatment_looks(scene, seeds), {}
    for panel, name in zip(axes, algorithms, strict=False):
        found = places([seed for seed in seeds if seed[0].algorithm == name])
        fronts[name] = draw_pareto(panel, scene, found, looks)
        head = f"{name}\n" if len(algorithms) > 1 else ""
        panel.set_title(style.plain(head + count_text(len(place.seeds) for place in found)))
    frame(axes)
    panels.label_edges(axes, THROUGHPUT.label, PASS_RATE.label, columns)
    panels.legend(figure, pareto_legend(scene, seeds, looks))
    on_frontier = {cell for front in fronts.values() for place in front for cell, _ in place.seeds}
    points = table([THROUGHPUT, PASS_RATE], seeds)
    points["on_frontier"] = [cell in on_frontier for cell, _ in seeds]
    return Drawing(figure, points)


def places(seeds: Seeds) -> list[Place]:
    """Seeds together, by mode, K and treatment."""
    groups: dict[tuple, list] = {}
    for cell, summary in seeds:
        groups.setdefault((cell.mode, cell.k, variant_of(summary).treatment), []).append((cell, summary))
    return [
        Place(
            *key,
            estimate([summary.trained_tokens_per_sec for _, summary in group]),
            estimate([final_pass_rate(summary) for _, summary in group]),
            group,
        )
        for key, group in groups.items()
    ]


def frontier(found: Sequence[Place]) -> list[Place]:
    """Places whose means no other place reaches in both, from slow to fast."""
    best, front = -1.0, []
    for place in sorted(found, key=lambda p: (-p.speed.mean, -p.rate.mean)):
        if place.rate.mean > best:
            front.append(place)
            best = place.rate.mean
    return front[::-1]


def draw_pareto(axes: Axes, scene: Scene, found: list[Place], looks: dict) -> list[Place]:
    """One panel; the frontier that it drew, whose members are ringed."""
    ks, front = bounds(scene.cells), frontier(found)
    for place in found:
        color = style.schedule_look(place.mode, place.k, ks)["color"]
        marker = looks[place.treatment]["marker"]
        xs = [summary.trained_tokens_per_sec for _, summary in place.seeds]
        ys = [final_pass_rate(summary) for _, summary in place.seeds]
        small = axes.scatter(xs, ys, s=9, marker=marker, color=color, alpha=0.5, linewidth=0)
        small.set_urls([scene.links[cell] for cell, _ in place.seeds])
        axes.scatter(
            place.speed.mean,
            place.rate.mean,
            s=42 if place in front else 26,
            marker=marker,
            facecolor="white" if place.mode == "async" else color,
            edgecolor="black" if place in front else color,
            linewidth=1.2,
            zorder=4,
        )
        if place.rate.n >= CLAIM_N:
            tall, wide = ((e.high - e.low) / 2 for e in (place.rate, place.speed))
            axes.errorbar(
                place.speed.mean, place.rate.mean, tall, wide, color=color, elinewidth=0.8, zorder=2
            )
        bad = [i for i, (_, summary) in enumerate(place.seeds) if summary.status == "collapsed"]
        if bad:
            cross(axes, [xs[i] for i in bad], [ys[i] for i in bad])
    steps = [place.speed.mean for place in front], [place.rate.mean for place in front]
    axes.step(*steps, where="pre", color="black", linewidth=1.0, linestyle=style.LINES[2], zorder=3)
    axes.xaxis.set_major_formatter(style.THOUSANDS)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    return front


def frame(axes: Sequence[Axes]) -> None:
    """Axes of panels that share them: speed from 0, pass rates where there are some."""
    low = min(panel.dataLim.y0 for panel in axes)
    for panel in axes:
        panel.set_xlim(0, panels.end(axes, "x"))
        panel.set_ylim(max(min(low, 0.75) - 0.05, -0.02), 1.02)


def pareto_legend(scene: Scene, seeds: Seeds, looks: dict) -> list:
    """Colors say K, shapes what is learned; hollow ones are of mode async."""
    shown = {(cell.mode == "sync", cell.k): (cell.mode, cell.k) for cell, _ in seeds}
    handles = []
    for mode, k in sorted(shown.values(), key=lambda s: (s[0] != "sync", float(s[1]))):
        handle = schedule_sample(mode, k, bounds(scene.cells))
        handle.set(marker="|", linestyle="none", markersize=9, markeredgewidth=5)
        handles.append(handle)
    shape = {"color": "black", "linestyle": "none", "markersize": 5}
    handles += [style.sample(name, **shape, marker=look["marker"]) for name, look in looks.items()]
    if any(cell.mode == "async" for cell, _ in seeds):
        handles.append(style.sample("mode async", **shape, marker="o", markerfacecolor="white"))
    ring = {"marker": "o", "markerfacecolor": "none", "markersize": 6.5}
    handles.append(style.sample("frontier", color="black", linestyle=style.LINES[2], **ring))
    return handles
