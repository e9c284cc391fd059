"""How much of the time each kind of process computed."""

import pandas as pd

from async_rollout.analysis.figures import style
from async_rollout.analysis.figures.drawing import Drawing, Scene, nothing
from async_rollout.analysis.figures.marks import Mark
from async_rollout.analysis.figures.rows import Panel, group, row_panels
from async_rollout.analysis.figures.tolerance import NO_CELL
from async_rollout.analysis.series import variant_of, variants

TITLE = "Busy share of the wall clock"


def busy_fractions(scene: Scene) -> Drawing:
    """Busy share by role, mode and K: a panel for each variant."""
    done = [(cell, summary) for cell, summary in scene.cells.done() if summary.busy_fraction]
    if not done:
        return nothing(scene, TITLE, *NO_CELL)
    roles = sorted({role for _, summary in done for role in summary.busy_fraction}, key=_rank)
    everyone = variants(scene.cells)
    found = []
    for variant in everyone:
        own = [(cell, summary) for cell, summary in done if variant_of(summary) == variant]
        marks = [
            (_said(role), Mark(cell, summary, 100 * share))
            for cell, summary in own
            for role, share in summary.busy_fraction.items()
        ]
        if marks:
            found.append(Panel(variant.label(everyone), "% of wall clock", group(marks)))
    looks = {_said(role): style.nth_look(number) for number, role in enumerate(roles)}
    figure, axes = row_panels(scene, TITLE, found, looks, per_row=3, sharex=True, legend="process")
    axes[0].set_xlim(-3, 103)
    rows = [
        {"cell": cell.id, "role": role, "busy_fraction": share, "status": summary.status}
        for cell, summary in done
        for role, share in summary.busy_fraction.items()
    ]
    return Drawing(figure, pd.DataFrame(rows))


def _rank(role: str) -> tuple:
    order = ("rollout", "trainer", "controller", "parameter_service", "reward")
    return order.index(role) if role in order else len(order), role


def _said(role: str) -> str:
    """`sync` and `lagged` run in one process, which has the mode's name."""
    return {"sync": "one process (sync)", "lagged": "one process (lagged)"}.get(role, role.replace("_", " "))
