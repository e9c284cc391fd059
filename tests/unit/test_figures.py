"""The figures: both formats, every cell linked, nothing clipped, the same bytes for the same data."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axis import Axis
from matplotlib.image import imread
from matplotlib.text import Text

from async_rollout.analysis.collect import collect
from async_rollout.analysis.figures.catalog import FIGURES, write_figure
from async_rollout.analysis.figures.pass_rate import fig_pass_rate_curves
from async_rollout.analysis.figures.staleness import fig_staleness_violin
from async_rollout.analysis.figures.style import styled
from async_rollout.analysis.figures.throughput import fig5c_throughput_vs_staleness
from async_rollout.analysis.series import by_schedule, variants
from summaries import a_cell, grid, write_cell, write_grid

DRAW = {f.__name__: f for f in (fig_pass_rate_curves, fig_staleness_violin, fig5c_throughput_vs_staleness)}
SWEEPS = {
    "demo": grid(),
    "full": grid(3, (0, 2, 4, 8), ("sync", "async", "areal")),
    "one cell": [a_cell(k="inf")],
    "sync only": grid(modes=("sync",)),
    "five variants": [a_cell(arm=arm, k=4) for arm in ("", "a", "b", "c", "d")],
}


def draw(name: str, cells):
    with styled():
        drawing = DRAW[name](cells, {cell: f"../runs/{cell.id}/" for cell in cells.expected})
        drawing.figure.draw_without_rendering()
    return drawing


def test_the_catalog_names_functions_that_exist() -> None:
    assert FIGURES.keys() == DRAW.keys()


@pytest.mark.parametrize("name", FIGURES)
def test_both_formats_are_written_with_a_link_to_each_cell(tmp_path: Path, name: str) -> None:
    cells = collect(write_grid(tmp_path, grid()))
    write_figure(name, cells, tmp_path / "sort" / "figures")
    image = imread(tmp_path / "sort" / "figures" / f"{name}.png")
    assert min(image.shape[:2]) > 700  # pixels at 200 dpi
    assert len(np.unique(image[::10, ::10, 0])) > 20  # shades
    svg = (tmp_path / "sort" / "figures" / f"{name}.svg").read_text()
    assert svg.count("<path") > 30
    for cell in grid():
        assert f'xlink:href="../runs/{cell.id}/"' in svg
    points = pd.read_csv(tmp_path / "sort" / "figures" / f"{name}.csv")
    assert set(points["cell"]) == {cell.id for cell in grid()}


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_data_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    for side in ("a", "b"):
        cells = collect(write_grid(tmp_path / side, grid()))
        write_figure(name, cells, tmp_path / side / "sort" / "figures")
    for end in ("png", "svg", "csv"):
        a, b = (tmp_path / side / "sort" / "figures" / f"{name}.{end}" for side in ("a", "b"))
        assert a.read_bytes() == b.read_bytes()
    assert "<dc:date>" not in a.with_suffix(".svg").read_text()


@pytest.mark.parametrize("sweep", SWEEPS)
@pytest.mark.parametrize("name", FIGURES)
def test_no_label_is_clipped_or_overlaps_its_neighbor(tmp_path: Path, name: str, sweep: str) -> None:
    figure = draw(name, collect(write_grid(tmp_path, SWEEPS[sweep]))).figure
    ticks = [tick_labels(axis) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    of_axes = {
        text for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in axis.findobj(Text)
    }
    texts = [text for text in figure.findobj(Text) if text not in of_axes and is_shown(text)]
    texts += [axis.label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) if is_shown(axis.label)]
    for text in [*texts, *(label for labels in ticks for label in labels)]:
        box, whole = text.get_window_extent(), figure.bbox.padded(1)
        assert whole.contains(box.x0, box.y0), text
        assert whole.contains(box.x1, box.y1), text
    for labels in ticks:
        boxes = [label.get_window_extent() for label in labels]
        assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    for axes in figure.axes:
        box = axes.title.get_window_extent()
        others = [other.title.get_window_extent() for other in figure.axes if other is not axes]
        assert not axes.get_title() or not any(box.overlaps(other) for other in others if other.width)


def is_shown(text: Text) -> bool:
    return bool(text.get_visible() and text.get_text().strip() and (not text.axes or text.axes.get_visible()))


def tick_labels(axis: Axis) -> list[Text]:
    """Tick labels within the view that are shown."""
    if not axis.axes.get_visible():
        return []
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [tick.label1 for tick in ticks if tick.label1.get_visible() and tick.label1.get_text()]


def test_three_seeds_have_a_mean_and_two_are_drawn_singly(tmp_path: Path) -> None:
    titles = {}
    for seeds in (2, 3):
        cells = collect(write_grid(tmp_path / str(seeds), grid(seeds)))
        figure = draw("fig_pass_rate_curves", cells).figure
        titles[seeds] = figure.axes[0].get_title()
        assert (len(figure.axes[0].containers) > 0) == (seeds == 3)  # error bars
    assert "n = 2, each seed drawn" in titles[2]
    assert "n = 3, mean and 95 % interval" in titles[3]


def test_the_synchronous_runs_stand_beside_each_objective_of_their_arm(tmp_path: Path) -> None:
    cells = collect(write_grid(tmp_path, grid()))
    found = {variant.objective: by_schedule(cells, variant) for variant in variants(cells)}
    assert found.keys() == {"live", "decoupled", "behavior"}
    for objective, schedules in found.items():
        assert schedules.keys() == {("sync", 0), ("areal", 0), ("areal", 4)}
        arms = {cell.arm for seeds in schedules.values() for cell, _ in seeds}
        assert arms == ({"behavior"} if objective == "behavior" else {""})


def test_the_violin_is_as_wide_as_the_shares(tmp_path: Path) -> None:
    histogram = {"0": 10_000_000, "1": 5_000_000, "3": 2_500_000}
    full = {"trained": histogram, "generated": {"9": 1}, "dropped": {"7": 1}}
    cell = a_cell()
    cells = collect({cell: write_cell(tmp_path, cell, staleness_histogram=full)})
    drawing = draw("fig_staleness_violin", cells)
    widths = [np.ptp(part.get_paths()[0].vertices[:, 0]) for part in drawing.figure.axes[0].collections[:4]]
    assert widths == pytest.approx([0.88, 0.44, 0.0, 0.22])
    assert drawing.points["mean_age"].item() == pytest.approx(12.5 / 17.5)
    assert drawing.points["max_age"].item() == 3


def test_training_pass_rate_pools_counts_of_a_window(tmp_path: Path) -> None:
    cell = a_cell()
    cells = collect({cell: write_cell(tmp_path, cell, updates=12, pass_rate_first=0.0, pass_rate_last=0.0)})
    points = draw("fig_pass_rate_curves", cells).points
    training = points[points["split"] == "training"]
    assert list(training["updates"]) == [float(n) for n in range(1, 13)]
    assert (training["pass_rate"] == 0).all()


def test_cells_with_several_attempts_are_no_speed(tmp_path: Path) -> None:
    one, two = a_cell(seed=0), a_cell(seed=1)
    cells = collect({one: write_cell(tmp_path, one), two: write_cell(tmp_path, two, attempts=2)})
    assert list(draw("fig5c_throughput_vs_staleness", cells).points["cell"]) == [one.id]


def test_a_lag_that_is_made_has_no_speed(tmp_path: Path) -> None:
    one, two = a_cell(), a_cell(mode="lagged")
    cells = collect({cell: write_cell(tmp_path, cell) for cell in (one, two)})
    assert list(draw("fig5c_throughput_vs_staleness", cells).points["cell"]) == [one.id]


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_finished_still_gives_a_figure_that_says_so(tmp_path: Path, name: str) -> None:
    cells = collect({a_cell(): tmp_path / "summary.json"})
    figure = draw(name, cells).figure
    assert any("no " in text.get_text() for text in figure.findobj(Text))


@pytest.mark.parametrize("name", FIGURES)
def test_a_backend_that_is_no_model_is_named_in_the_figure(tmp_path: Path, name: str) -> None:
    cell = a_cell()
    cells = collect({cell: write_cell(tmp_path, cell, backend="tabular")})
    figure = draw(name, cells).figure
    assert "backend tabular: no language model" in figure.get_suptitle()


@pytest.mark.parametrize("name", FIGURES)
def test_names_that_look_like_formulas_are_drawn_as_they_are(tmp_path: Path, name: str) -> None:
    cell = a_cell(dataset="jsonl:$\\frac{$.jsonl", arm="a$\\b$")
    figure = draw(name, collect({cell: write_cell(tmp_path, cell)})).figure
    assert r"jsonl:\$\frac{\$.jsonl" in figure.get_suptitle()  # each dollar sign is only that


@pytest.mark.parametrize("name", FIGURES)
def test_a_cell_without_metrics_is_drawn_from_its_summary(tmp_path: Path, name: str) -> None:
    cell = a_cell()
    cells = collect({cell: write_cell(tmp_path, cell, metrics=False)})
    assert set(draw(name, cells).points["cell"]) == {cell.id}
