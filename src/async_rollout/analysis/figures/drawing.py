"""What a figure is drawn from, what it becomes, and how it is saved: the same data give the same bytes."""

import io
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.figures import style
from async_rollout.analysis.figures.vector import compact
from async_rollout.config.cells import Cell

DPI = 200


@dataclass(frozen=True)
class Scene:
    """Cells of one dataset, the URL of each one's directory, and the pass rate that counts as reached."""

    cells: Cells
    links: Mapping[Cell, str]
    threshold: float


@dataclass(frozen=True)
class Drawing:
    """A figure and the numbers in it: a row a point, with the id of its `cell`."""

    figure: Figure
    points: pd.DataFrame


def new_figure(scene: Scene, title: str, height: float, width: float = style.WIDTH, note: str = "") -> Figure:
    """An empty figure (inches) whose parts make room for each other, under its heading."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(h_pad=0.06, w_pad=0.06)
    names = sorted({s.backend for _, s in scene.cells.done()} - {"causal_lm"})
    datasets = ", ".join(scene.cells.datasets)
    lines = textwrap.wrap(f"{title}: {datasets}", int(width * 11))
    if names:
        lines.append(f"holds cells of backend {' and '.join(names)}: no language model")
    lines += textwrap.wrap("; ".join(filter(None, [_gaps(scene.cells), note])), int(width * 12))
    color = style.BAD if names else "black"
    figure.suptitle(style.plain("\n".join(lines)), fontsize=10.5, color=color)
    return figure


def _gaps(cells: Cells) -> str:
    """Which cells a reader does not see, or should not take for sound ones."""
    done = cells.done()
    lost = len(cells.expected) - len(done)
    collapsed = sum(summary.status == "collapsed" for _, summary in done)
    parts = [f"{lost} of {len(cells.expected)} cells missing or broken"] if lost else []
    parts += [f"{collapsed} collapsed (red crosses)"] if collapsed else []
    return ", ".join(parts)


def nothing(scene: Scene, title: str, why: str, remedy: str) -> Drawing:
    """A figure that says why it is empty, and what would fill it."""
    figure = new_figure(scene, title, 1.5)
    axes = figure.add_subplot()
    axes.axis("off")
    for text, y, look in ((why, 0.6, {"weight": "bold"}), (remedy, 0.5, {"color": style.FAINT, "va": "top"})):
        lines = style.plain("\n".join(textwrap.wrap(text, 88)))
        axes.text(0.5, y, lines, ha="center", transform=axes.transAxes, linespacing=1.5, **look)
    return Drawing(figure, pd.DataFrame(columns=["cell"]))


def settle(figure: Figure) -> None:
    """Lay out once and for all. What the solver leaves in the last digits differs from run to run."""
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position([round(float(edge), 6) for edge in axes.get_position(original=True).bounds])


def save(drawing: Drawing, stem: Path) -> None:
    """`stem`.png, .svg and .csv; without dates."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    settle(drawing.figure)
    drawn = io.BytesIO()
    drawing.figure.savefig(drawn, dpi=DPI)
    # A palette of its own shows the same in a third of the bytes.
    picture = Image.open(drawn).convert("RGB")
    picture = picture.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    picture.save(stem.with_name(f"{stem.name}.png"), dpi=(DPI, DPI))
    outlines = io.StringIO()
    drawing.figure.savefig(outlines, format="svg", metadata={"Date": None, "Creator": None})
    stem.with_name(f"{stem.name}.svg").write_text(compact(outlines.getvalue()), encoding="utf-8")
    drawing.points.to_csv(stem.with_name(f"{stem.name}.csv"), index=False, float_format="%.10g")
