"""SAO and its baselines: learning curves of several algorithms in one panel."""

from matplotlib.axes import Axes

from async_rollout.analysis.figures import panels, style
from async_rollout.analysis.figures.curves import draw_curve, held_out
from async_rollout.analysis.figures.drawing import Drawing, Scene, nothing
from async_rollout.analysis.figures.learning import curve_points
from async_rollout.analysis.figures.marks import count_text
from async_rollout.analysis.series import Seeds, Variant, modes, variant_of, variants

TITLE = "Algorithms"
MISSING = (
    "no two algorithms have finished cells in one mode and at one K",
    "algorithms: [sao, grpo, grpo_dis, running_mean, single_dis] has them (config/math_sao_tiny.yaml)",
)
Panel = tuple[str, dict[Variant, Seeds]]


def algorithm_curves(scene: Scene) -> Drawing:
    """Held-out pass rate by updates: with each one's own batch, and at equal numbers of trajectories."""
    found = comparisons(scene)
    if not found:
        return nothing(scene, TITLE, *MISSING)
    columns = 2
    figure, axes = panels.grid(scene, TITLE, len(found), per_row=columns, height=2.3)
    looks = _looks(scene, found)
    for panel, (title, lines) in zip(axes, found, strict=False):
        _draw(panel, lines, scene, looks)
        panel.set_title(style.plain(f"{title}\n{count_text(map(len, lines.values()))}"))
    axes[0].set_ylim(-0.02, 1.02)
    panels.label_edges(axes, "updates", "held-out pass rate", columns)
    shown = dict.fromkeys(variant for _, lines in found[: panels.MOST] for variant in lines)
    names = sorted(shown, key=lambda v: (v.algorithm, v.arm))
    panels.legend(figure, [style.sample(_name(v), **looks[v], markersize=4.5) for v in names])
    seeds = dict.fromkeys(cell for _, lines in found for group in lines.values() for cell, _ in group)
    summaries = scene.cells.summaries
    curves = {("held-out", cell): held_out(summaries[cell]) for cell in seeds}
    return Drawing(figure, curve_points(curves, summaries))


def comparisons(scene: Scene) -> list[Panel]:
    """Panels with two algorithms and more: for each mode, at its largest K that several have."""
    found = []
    for mode in modes(scene.cells):
        at = [
            (cell, summary)
            for cell, summary in scene.cells.done()
            if cell.mode == mode and summary.eval_pass_rate
        ]
        ks = [k for k in {cell.k for cell, _ in at} if len({c.algorithm for c, _ in at if c.k == k}) > 1]
        if not ks:
            continue
        k = max(ks, key=lambda k: -1.0 if k == "inf" else float(k))
        at = [(cell, summary) for cell, summary in at if cell.k == k]
        where = style.schedule_label(mode, k)
        found.append((f"{where}: base arm of each", _lines([s for s in at if not s[0].arm])))
        for size in sorted({_trajectories(summary) for _, summary in at}):
            equal = _lines([s for s in at if _trajectories(s[1]) == size])
            found.append((f"{where}: {size} trajectories an update", equal))
    several = [(t, lines) for t, lines in found if len({v.algorithm for v in lines}) > 1]
    return [p for i, p in enumerate(several) if p[1].keys() not in [q[1].keys() for q in several[:i]]]


def _lines(seeds: Seeds) -> dict[Variant, Seeds]:
    lines: dict[Variant, Seeds] = {}
    for cell, summary in seeds:
        lines.setdefault(variant_of(summary), []).append((cell, summary))
    return lines


def _trajectories(summary) -> int:
    """Samples that an update trains."""
    return round(summary.samples.trained / max(summary.updates, 1))


def _name(variant: Variant) -> str:
    return f"{variant.algorithm}, {variant.treatment}"


def _looks(scene: Scene, found: list[Panel]) -> dict[Variant, dict]:
    """Colors and markers by algorithm; line styles tell its arms apart."""
    algorithms = sorted({v.algorithm for v in variants(scene.cells)})
    looks, arms = {}, {}
    for variant in dict.fromkeys(v for v in variants(scene.cells)):
        rank = arms[variant.algorithm] = arms.get(variant.algorithm, -1) + 1
        look = style.nth_look(algorithms.index(variant.algorithm))
        looks[variant] = look | {"linestyle": style.LINES[rank % len(style.LINES)]}
    return looks


def _draw(axes: Axes, lines: dict[Variant, Seeds], scene: Scene, looks: dict) -> None:
    for variant, seeds in lines.items():
        drawn = [(cell, summary, held_out(summary)) for cell, summary in seeds]
        draw_curve(axes, drawn, scene.links, looks[variant])
