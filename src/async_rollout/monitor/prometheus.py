"""The cells in Prometheus's text format, version 0.0.4."""

from async_rollout.monitor.schema import Card, Listing
from async_rollout.monitor.state import STATES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_GAUGES = {
    "version": "Commits so far",
    "progress": "Share of the updates that are done",
    "pass_rate": "Pass rate of recent training samples",
    "eval_pass_rate": "Newest held-out pass rate, sampled",
    "staleness": "Mean age of trained tokens in policy versions",
    "staleness_max": "Age of the oldest trained token in policy versions",
    "tokens_per_sec": "Trained tokens a second",
    "attempts": "Starts of the cell",
    "last_sign": "Time of the last sign of life, seconds since 1970",
}


def exposition(listing: Listing) -> str:
    """All gauges."""
    lines = ["# HELP async_rollout_cells Cells by state", "# TYPE async_rollout_cells gauge"]
    lines += [f'async_rollout_cells{{state="{s}"}} {listing.sweep.states.get(s, 0)}' for s in STATES]
    for name, about in _GAUGES.items():
        metric = f"async_rollout_cell_{name}"
        lines += [f"# HELP {metric} {about}", f"# TYPE {metric} gauge"]
        lines += [
            f"{metric}{{{_labels(card)}}} {value}"
            for card in listing.cells
            if (value := getattr(card, name)) is not None
        ]
    return "\n".join(lines) + "\n"


def _labels(card: Card) -> str:
    pairs = {"experiment": card.experiment, "dataset": card.dataset, "cell": card.cell}
    return ",".join(f'{name}="{_escape(value)}"' for name, value in pairs.items())


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
