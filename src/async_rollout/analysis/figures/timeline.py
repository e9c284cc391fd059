"""Who was busy when: the first part of one run of each mode, from its trace.json."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from async_rollout.analysis.figures import panels, style
from async_rollout.analysis.figures.drawing import Drawing, Scene, new_figure, nothing
from async_rollout.analysis.series import modes, variant_of
from async_rollout.config.cells import Cell
from async_rollout.records.summary import Summary

TITLE = "Who was busy when"
UPDATES = 8  # shown: later ones look alike
MISSING = (
    "no finished cell has a sound trace.json",
    "each run writes it beside its summary.json; published results leave it out: run the sweep again",
)
LOOKS = {  # color, hatch
    "generate": (style.COLORS[0], ""),
    "train": (style.COLORS[1], ""),
    "reload": (style.COLORS[4], "////"),
    "publish": (style.COLORS[6], ""),
    "check and flip": (style.COLORS[3], ""),
    "control": ("#777777", ""),
    "judge": ("#999933", ""),
    "wait for batch": ("#dddddd", ""),
    "snapshot": (style.COLORS[2], "\\\\"),
    "checkpoint": (style.COLORS[7], "xx"),
}
OTHER = (style.COLORS[5], "")


@dataclass(frozen=True)
class Span:
    """What one process did from `start` to `end`, in seconds of the run."""

    role: str
    name: str
    start: float
    end: float


def timeline(scene: Scene) -> Drawing:
    """A chart for each mode, a row for each process; the fastest asynchronous K that has a bound."""
    chosen = [found for mode in modes(scene.cells) if (found := first_cell(scene, mode))]
    if not chosen:
        return nothing(scene, TITLE, *MISSING)
    heights = [0.38 * len(_roles(spans)) + 0.2 for *_, spans in chosen]
    figure = new_figure(scene, TITLE, sum(heights) + 0.45 * len(chosen) + 0.4)
    axes = figure.subplots(len(chosen), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for panel, (cell, summary, spans) in zip(axes, chosen, strict=True):
        chart(panel, spans, scene.links[cell])
        seed = f"{variant_of(summary).treatment}, seed {cell.seed}"
        panel.set_title(style.plain(f"{style.schedule_label(cell.mode, cell.k)}: {cell.algorithm}, {seed}"))
    axes[0].set_xlim(0, max(span.end for *_, spans in chosen for span in spans))
    axes[-1].set_xlabel(f"seconds of the run: the first {UPDATES} updates of each")
    panels.legend(figure, samples([span.name for *_, spans in chosen for span in spans]))
    rows = [
        {"cell": cell.id, "process": s.role, "span": s.name, "start": s.start, "end": s.end}
        for cell, _, spans in chosen
        for s in spans
    ]
    return Drawing(figure, pd.DataFrame(rows))


def first_cell(scene: Scene, mode: str) -> tuple[Cell, Summary, list[Span]] | None:
    """One cell of a mode and the spans of its first updates; None if no cell has a sound trace."""
    found = [(cell, summary) for cell, summary in scene.cells.done() if cell.mode == mode]
    for cell, summary in sorted(found, key=lambda s: (s[1].status != "done", _slowness(s[0].k), s[0].seed)):
        try:
            text = (scene.cells.directory(cell) / "trace.json").read_text(encoding="utf-8")
            spans = first_part(read_spans(json.loads(text)))
        except (OSError, ValueError, KeyError, TypeError):  # none, cut, or another program's
            continue
        if spans:
            return cell, summary, spans
    return None


def _slowness(k: int | str) -> float:
    return 1.0 if k == "inf" else -float(k)


def read_spans(trace: dict) -> list[Span]:
    """Complete events of a Chrome trace, under the names of their processes."""
    events = trace["traceEvents"]
    roles = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    return [
        Span(roles[e["pid"]], e["name"], e["ts"] / 1e6, (e["ts"] + e["dur"]) / 1e6)
        for e in events
        if e["ph"] == "X"
    ]


def first_part(spans: list[Span]) -> list[Span]:
    """Spans within the first `UPDATES` updates, cut where those end."""
    trained = sorted(span.end for span in spans if span.name == "train")[:UPDATES]
    end = trained[-1] if trained else max((span.end for span in spans), default=0.0)
    return [
        Span(s.role, s.name, max(s.start, 0.0), min(s.end, end)) for s in spans if s.start < end and s.end > 0
    ]


def _rank(role: str) -> tuple:
    order = ("rollout", "trainer", "controller", "parameter_service", "reward")
    kind = role.rpartition("-")[0]
    return order.index(kind) if kind in order else len(order), role


def _roles(spans: list[Span]) -> list[str]:
    return sorted({span.role for span in spans}, key=_rank)


def chart(axes: Axes, spans: list[Span], url: str) -> None:
    """A lane for each process; each kind of span one collection."""
    roles = _roles(spans)
    for lane, role in enumerate(roles):
        for name in dict.fromkeys(span.name for span in spans if span.role == role):
            bars = [(s.start, s.end - s.start) for s in spans if (s.role, s.name) == (role, name)]
            axes.broken_barh(bars, (lane - 0.36, 0.72), **_look(name)).set_urls([url] * len(bars))
    axes.set_yticks(range(len(roles)), [style.plain(role.replace("_", "\n")) for role in roles])
    axes.set_ylim(len(roles) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def _look(name: str) -> dict:
    """The edge keeps what is very short visible."""
    color, hatch = LOOKS.get(name, OTHER)
    return {"facecolor": color, "hatch": hatch, "edgecolor": "white" if hatch else color, "linewidth": 0.6}


def samples(names: Iterable[str]) -> list[Patch]:
    """Entries of a legend for these kinds of span."""
    found = set(names)
    known = [name for name in LOOKS if name in found]
    return [Patch(label=name, **_look(name)) for name in [*known, *sorted(found - LOOKS.keys())]]
