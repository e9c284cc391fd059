"""What a mode costs in time, and what it gets done in the time that another needs."""

from matplotlib.figure import Figure

from async_rollout.analysis.figures.against_k import Measure, table, treatment_looks
from async_rollout.analysis.figures.drawing import Drawing, Scene, nothing
from async_rollout.analysis.figures.marks import Mark
from async_rollout.analysis.figures.rows import Panel, group, row_panels
from async_rollout.analysis.figures.throughput import UNTIMED
from async_rollout.analysis.series import Seeds, is_timed, keep, variant_of
from async_rollout.config.cells import Cell
from async_rollout.records.cells import read_metrics


def wall_clock_vs_mode(scene: Scene) -> Drawing:
    """Seconds from all-ready to the last commit by mode and K."""
    title = "Wall clock by mode"
    timed = keep(scene.cells, is_timed)
    if not timed:
        return nothing(scene, title, *UNTIMED)
    values = {cell: summary.wall_clock_sec for cell, summary in timed}
    measure = Measure("wall_clock_sec", "seconds of wall clock", lambda summary: summary.wall_clock_sec)
    return Drawing(_by_algorithm(scene, title, timed, values, measure.label), table([measure], timed))


def updates_vs_mode(scene: Scene) -> Drawing:
    """Commits that changed the policy within the time that the fastest run needed for all of its own."""
    title = "Updates in equal time"
    timed = keep(scene.cells, lambda c, s: is_timed(c, s) and s.status == "done")
    if not timed:
        return nothing(scene, title, *UNTIMED)
    seconds = min(summary.wall_clock_sec for _, summary in timed)
    values = {cell: _updates_until(scene, cell, seconds) for cell, _ in timed}
    values = {cell: count for cell, count in values.items() if count is not None}
    counted = [(cell, summary) for cell, summary in timed if cell in values]
    if not counted:
        return nothing(
            scene,
            title,
            "no finished cell has a sound metrics.jsonl",
            "each run writes it beside its summary.json: keep both, or run the cell again",
        )
    note = f"the fastest run took {seconds:.4g} s"
    figure = _by_algorithm(scene, title, counted, values, f"updates after {seconds:.4g} s", note)
    points = table([], counted)
    points["seconds"] = seconds
    points["updates"] = [values[cell] for cell, _ in counted]
    return Drawing(figure, points)


def _updates_until(scene: Scene, cell: Cell, seconds: float) -> int | None:
    """Commits that trained something by then; None if the cell has no sound metrics.jsonl."""
    try:
        rows = read_metrics(scene.cells.directory(cell))
    except (FileNotFoundError, ValueError):
        return None
    return sum(row.seconds <= seconds and not row.empty and not row.critic_only for row in rows)


def _by_algorithm(
    scene: Scene, title: str, seeds: Seeds, values: dict[Cell, float], label: str, note: str = ""
) -> Figure:
    algorithms = sorted({cell.algorithm for cell, _ in seeds})
    looks = treatment_looks(scene, seeds)
    found = []
    for name in algorithms:
        marks = [(variant_of(s).treatment, Mark(c, s, values[c])) for c, s in seeds if c.algorithm == name]
        found.append(Panel(name, label, group(marks)))
    figure, _ = row_panels(scene, title, found, looks, note=note, sharex=True)
    return figure
