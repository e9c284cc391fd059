"""What it means that a cell has no usable summary."""

from typing import Literal

from async_rollout.analysis.collect import Gap

Standing = Literal["damaged", "failed", "running", "queued", "stopped", "missing"]


def standing(gap: Gap, under_way: bool) -> Standing:
    """While a sweep is under way a cell that has not begun is `queued`, and one in the middle `running`.

    When it is over they are `missing` and `stopped`. `damaged`: there is a summary, of no use.
    """
    if gap.kind == "broken":
        return "damaged"
    if gap.state is None:
        return "queued" if under_way else "missing"
    if gap.state.state == "failed":
        return "failed"
    if gap.state.state in ("done", "collapsed"):
        return "missing"  # it ended, and its summary is gone
    return "running" if under_way else "stopped"
