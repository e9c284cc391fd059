"""The figures: every one from any sweep, both formats, every cell linked, nothing clipped, and no number but
those of the records."""

import json
import math
import warnings
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axis import Axis
from matplotlib.image import imread
from matplotlib.text import Text

from async_rollout.analysis.collect import Cells, collect
from async_rollout.analysis.figures import catalog
from async_rollout.analysis.figures.catalog import FIGURES, write_figure
from async_rollout.analysis.figures.drawing import Drawing, Scene
from async_rollout.analysis.figures.marks import count_text
from async_rollout.analysis.figures.pareto import frontier, places
from async_rollout.analysis.figures.style import styled
from async_rollout.analysis.series import by_schedule, variants
from summaries import a_cell, grid, metrics_rows, summary_record, write_cell, write_grid

ASKED_FOR = {
    "fig_overview_poster",
    "fig_reward_curves",
    "fig_pass_rate_curves",
    "fig_pareto",
    "fig_time_to_threshold",
    "fig_staleness_violin",
    "fig_reward_per_ktoken",
    "fig_updates_per_sec",
    "fig5a_naive_learning_curves",
    "fig5b_decoupled_learning_curves",
    "fig5c_throughput_vs_staleness",
    "fig6b_interruptible_throughput",
    "reward_vs_staleness",
    "wall_clock_vs_mode",
    "updates_vs_mode",
    "queue_depth_traces",
    "timeline",
    "busy_fractions",
    "algorithm_curves",
    "importance_weights",
}
LONG_ARMS = ("", "a-long-name-of-an-arm", "another-rather-long-one")
DRAINS = [a_cell(arm="drain", k=k) for k in (0, 4)]
SWEEPS = {
    "full": [
        *grid(3, (0, 4), ("sync", "areal")),
        *(a_cell(mode="lagged", algorithm=name, seed=seed) for name in ("grpo", "sao") for seed in range(3)),
    ],
    "small": [*grid(1), *DRAINS, a_cell(mode="lagged"), a_cell(mode="lagged", algorithm="sao")],
    "many K": grid(1, (0, 1, 2, 4, 8, 16, "inf"), ("sync", "async")),
    "long names": [a_cell(arm=arm, k=k) for arm in LONG_ARMS for k in (0, 16)],
    "one mode": grid(2, modes=("sync",)),
    "one cell": [a_cell(k="inf")],
    "collapsed": [a_cell(k=k, seed=seed) for k in (0, 4) for seed in range(3)],
    "empty": [],
}
SPANS = [("trainer-0", "wait for batch", 0), ("rollout-0", "generate", 0), ("trainer-0", "train", 400)]


def draw(name: str, cells: Cells, threshold: float = 0.6) -> Drawing:
    """The figure of this name; a warning is an error."""
    module = __import__(f"{catalog.__package__}.{FIGURES[name].module}", fromlist=[name])
    links = {cell: f"../runs/{cell.id}/" for cell in cells.expected}
    with styled(), warnings.catch_warnings():
        warnings.simplefilter("error")
        return getattr(module, name)(Scene(cells, links, threshold))


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory) -> dict[str, Cells]:
    """The sweeps above as they lie on disk; one seed of the collapsed one is missing."""
    found = {}
    for name, cells in SWEEPS.items():
        results = tmp_path_factory.mktemp("results")
        paths = write_grid(results, cells)
        for cell, path in paths.items():
            if cell.arm == "drain":
                record = json.loads(path.read_text())
                record["config"] |= {"rollout": {"update": "drain"}, "objective": {"name": "decoupled"}}
                path.write_text(json.dumps(record | {"objective": "decoupled"}))
            if cell.seed == 0:
                write_trace(path.parent)
        if name == "collapsed":
            paths = {cell: collapse(results, cell) if cell.seed else path for cell, path in paths.items()}
        if name in ("collapsed", "empty"):
            paths[a_cell(k=4, seed=9)] = results / "missing" / "summary.json"
        found[name] = collect(paths)
    return found


def collapse(results: Path, cell) -> Path:
    points = summary_record(cell)["eval_pass_rate"][: 1 + cell.seed]
    return write_cell(results, cell, status="collapsed", updates=20 * cell.seed, eval_pass_rate=points)


def write_trace(directory: Path) -> None:
    names = sorted({role for role, *_ in SPANS})
    events = [{"ph": "M", "name": "process_name", "pid": i, "args": {"name": n}} for i, n in enumerate(names)]
    events += [
        {"ph": "X", "pid": names.index(role), "name": name, "ts": 1000.0 * update + start, "dur": 400.0}
        for update in range(20)
        for role, name, start in SPANS
    ]
    (directory / "trace.json").write_text(json.dumps({"traceEvents": events}))


def test_every_figure_asked_for_is_in_the_catalog() -> None:
    assert FIGURES.keys() == ASKED_FOR
    for entry in FIGURES.values():
        assert entry.title
        assert entry.caption.endswith(".")
        assert not set(entry.caption) & set("*`|<")  # plain in HTML, Markdown and reStructuredText


@pytest.mark.parametrize("sweep", SWEEPS)
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_from_any_sweep(sweeps, name: str, sweep: str) -> None:
    drawing = draw(name, sweeps[sweep])
    assert set(drawing.points["cell"]) <= {cell.id for cell, _ in sweeps[sweep].done()}
    assert len(drawing.figure.axes) >= 1


@pytest.mark.parametrize("sweep", ["small", "many K", "long names"])
@pytest.mark.parametrize("name", FIGURES)
def test_no_label_is_clipped_or_too_small_or_overlaps_its_neighbor(sweeps, name: str, sweep: str) -> None:
    figure = draw(name, sweeps[sweep]).figure
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.draw_without_rendering()
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
        assert text.get_fontsize() >= 8, text
    for labels in ticks:
        boxes = [label.get_window_extent() for label in labels]
        assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    titles = [axes.title for axes in figure.axes] + [axes._left_title for axes in figure.axes]
    boxes = [title.get_window_extent() for title in titles if title.get_text()]
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)


def is_shown(text: Text) -> bool:
    return bool(text.get_visible() and text.get_text().strip() and (not text.axes or text.axes.get_visible()))


def tick_labels(axis: Axis) -> list[Text]:
    """Tick labels within the view that are shown."""
    if not axis.axes.get_visible() or not axis.axes.axison:
        return []
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [tick.label1 for tick in ticks if tick.label1.get_visible() and tick.label1.get_text()]


@pytest.mark.parametrize("name", FIGURES)
def test_both_formats_are_written_with_a_link_to_each_cell(tmp_path: Path, sweeps, name: str) -> None:
    cells = sweeps["small"]
    write_figure(name, cells, tmp_path)
    image = imread(tmp_path / f"{name}.png")
    assert min(image.shape[:2]) > 400  # pixels at 200 dpi
    assert len(np.unique(image[::10, ::10, 0])) > 10  # shades
    svg = (tmp_path / f"{name}.svg").read_text()
    assert "<dc:date>" not in svg
    points = pd.read_csv(tmp_path / f"{name}.csv")
    assert len(points)
    assert set(points["cell"]) <= {cell.id for cell in cells.expected}
    for cell in cells.expected:
        if cell.id in set(points["cell"]):
            assert f"runs/{cell.id}/" in svg


@pytest.mark.parametrize("name", ["fig_staleness_violin", "timeline"])
def test_the_same_data_gives_the_same_bytes(tmp_path: Path, sweeps, name: str) -> None:
    for side in ("a", "b"):
        write_figure(name, sweeps["small"], tmp_path / side)
    for end in ("png", "svg", "csv"):
        a, b = (tmp_path / side / f"{name}.{end}" for side in ("a", "b"))
        assert a.read_bytes() == b.read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_finished_still_gives_a_figure_that_says_what_would_fill_it(sweeps, name: str) -> None:
    drawing = draw(name, sweeps["empty"])
    text = " ".join(text.get_text() for text in drawing.figure.findobj(Text))
    assert text.count("no ") >= 1
    assert "1 of 1 cells missing" in text
    assert len(drawing.points) == 0


@pytest.mark.parametrize(
    ("name", "sweep", "says"),
    [
        ("fig6b_interruptible_throughput", "one cell", "rollout.update: drain"),
        ("algorithm_curves", "one cell", "algorithms: [sao, grpo"),
        ("fig5a_naive_learning_curves", "one cell", "objective.name: behavior"),
        ("queue_depth_traces", "one mode", "modes: [areal]"),
        ("reward_vs_staleness", "one cell", "staleness_k with several"),
        ("fig5c_throughput_vs_staleness", "collapsed", "4 collapsed"),
        ("wall_clock_vs_mode", "collapsed", "1 of 7 cells missing"),
    ],
)
def test_what_the_sweep_lacks_is_said(sweeps, name: str, sweep: str, says: str) -> None:
    texts = draw(name, sweeps[sweep]).figure.findobj(Text)
    assert says in " ".join(" ".join(text.get_text() for text in texts).split())


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        ("fig5c_throughput_vs_staleness", "trained_tokens_per_sec", lambda s: s.trained_tokens_per_sec),
        ("fig_updates_per_sec", "updates_per_sec", lambda s: s.updates_per_sec),
        ("fig_reward_per_ktoken", "reward_per_ktoken", lambda s: 0.5 * 1000 / (s.tokens.generated / 1000)),
        ("reward_vs_staleness", "pass_rate", lambda s: s.eval_pass_rate[-1].sampled),
        ("importance_weights", "ess_ratio", lambda s: s.ess_ratio),
        ("importance_weights", "mask_fraction", lambda s: s.mask_fraction),
        ("wall_clock_vs_mode", "wall_clock_sec", lambda s: s.wall_clock_sec),
        ("fig_pareto", "pass_rate", lambda s: s.eval_pass_rate[-1].sampled),
        ("fig_overview_poster", "staleness_mean", lambda s: s.staleness_mean),
        ("fig6b_interruptible_throughput", "generated_tokens_per_sec", lambda s: s.generated_tokens_per_sec),
        ("fig_staleness_violin", "mean_age", lambda s: s.staleness_mean),
    ],
)
def test_the_points_are_those_of_the_summaries(sweeps, name: str, column: str, value) -> None:
    points = draw(name, sweeps["small"]).points
    summaries = {cell.id: summary for cell, summary in sweeps["small"].done()}
    assert len(points) > 3
    for cell, found in zip(points["cell"], points[column], strict=True):
        assert found == pytest.approx(value(summaries[cell]), rel=1e-12)


def test_points_of_a_curve_are_evaluations_and_windows_of_commits(tmp_path: Path) -> None:
    cell = a_cell()
    cells = collect({cell: write_cell(tmp_path, cell, updates=24)})
    points = draw("fig_pass_rate_curves", cells).points
    (summary,) = cells.summaries.values()
    held_out = points[points["split"] == "held-out"]
    assert list(held_out["value"]) == [point.sampled for point in summary.eval_pass_rate]
    rows = metrics_rows(summary_record(cell, updates=24))
    training = points[points["split"] == "training"]
    assert list(training["updates"]) == [2 * window + 1.5 for window in range(12)]
    assert list(training["value"]) == [
        (a.correct + b.correct) / 256 for a, b in zip(rows[::2], rows[1::2], strict=True)
    ]


def test_the_time_to_a_threshold_is_that_of_the_first_evaluation_there(tmp_path: Path) -> None:
    fast, slow = a_cell(seed=0), a_cell(seed=1)
    low = [p | {"sampled": 0.1} for p in summary_record(slow)["eval_pass_rate"]]
    paths = {fast: write_cell(tmp_path, fast), slow: write_cell(tmp_path, slow, eval_pass_rate=low)}
    drawing = draw("fig_time_to_threshold", collect(paths), threshold=0.5)
    assert list(drawing.points["updates"]) == [40.0, math.inf]
    ticks = [label.get_text() for axes in drawing.figure.axes for label in axes.get_xticklabels()]
    assert ticks.count("not reached") == 2  # updates, seconds


def test_updates_are_counted_to_the_end_of_the_fastest_run(tmp_path: Path) -> None:
    fast, slow = a_cell(k=4), a_cell(k=0)
    paths = {fast: write_cell(tmp_path, fast, wall_clock_sec=12.5), slow: write_cell(tmp_path, slow)}
    points = draw("updates_vs_mode", collect(paths)).points  # commits are a second apart, from 0
    assert list(points["updates"]) == [13, 13]


def test_three_seeds_have_an_interval_and_two_have_none(tmp_path: Path) -> None:
    titles = {}
    for seeds in (2, 3):
        cells = collect(write_grid(tmp_path / str(seeds), grid(seeds)))
        axes = draw("fig5c_throughput_vs_staleness", cells).figure.axes[0]
        titles[seeds] = axes.get_title()
        assert bool(axes.containers) == (seeds == 3)  # error bars
        bands = draw("fig5a_naive_learning_curves", cells).figure.axes[0].collections
        assert any(band.get_alpha() == 0.14 for band in bands) == (seeds == 3)
        ends = [
            zip(band.get_urls(), band.get_offsets()[:, 1], strict=True)
            for band in bands
            if any(band.get_urls() or ())
        ]
        last = {
            f"../runs/{cell.id}/": summary.eval_pass_rate[-1].sampled
            for cell, summary in cells.done()
            if cell.arm == "behavior"
        }
        assert {url: y for end in ends for url, y in end} == pytest.approx(last)  # none under another
    assert "n = 2: no interval" in titles[2]
    assert "n = 3, 95 % interval" in titles[3]
    assert count_text([1, 3]) == "n = 1–3, 95 % interval if n ≥ 3"


@pytest.mark.parametrize("name", ["fig5c_throughput_vs_staleness", "wall_clock_vs_mode", "fig_pareto"])
def test_panels_that_share_an_axis_show_all_of_their_data(tmp_path: Path, name: str) -> None:
    paths = {}
    for factor, algorithm in ((3.0, "grpo"), (1.0, "sao")):  # the later panel has the smaller values
        cell = a_cell(algorithm=algorithm)
        record = summary_record(cell)
        changes = {key: factor * record[key] for key in ("wall_clock_sec", "trained_tokens_per_sec")}
        paths[cell] = write_cell(tmp_path, cell, **changes)
    for axes in draw(name, collect(paths)).figure.axes:
        assert axes.viewLim.padded(1e-9).contains(*axes.dataLim.min)
        assert axes.viewLim.padded(1e-9).contains(*axes.dataLim.max)


def test_collapsed_cells_are_crossed_out(sweeps) -> None:
    axes = draw("reward_vs_staleness", sweeps["collapsed"]).figure.axes[0]
    red = [
        c
        for c in axes.collections
        if tuple(c.get_edgecolor()[0][:3]) == pytest.approx((0.69, 0, 0.125), abs=0.01)
    ]
    assert sum(len(c.get_offsets()) for c in red) == 4


def test_the_frontier_is_what_no_other_beats_in_both(tmp_path: Path) -> None:
    speeds = {(0, 10.0): 0.9, (1, 20.0): 0.5, (2, 30.0): 0.7, (4, 40.0): 0.7, (8, 50.0): 0.2}
    paths = {}
    for (k, speed), rate in speeds.items():
        point = summary_record(a_cell())["eval_pass_rate"][-1] | {"sampled": rate}
        cell = a_cell(k=k)
        paths[cell] = write_cell(tmp_path, cell, trained_tokens_per_sec=speed, eval_pass_rate=[point])
    assert [place.k for place in frontier(places(collect(paths).done()))] == [0, 4, 8]
    points = draw("fig_pareto", collect(paths)).points
    assert list(points[points["on_frontier"]]["k"]) == [0, 4, 8]


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
    outline = drawing.figure.axes[0].collections[0].get_paths()[0].vertices
    widths = [np.ptp(outline[np.isclose(outline[:, 1], age)][:, 0]) for age in (-0.5, 3.5)]
    assert widths == pytest.approx([0.88, 0.22])
    at_a_half = np.unique(np.abs(outline[np.isclose(outline[:, 1], 0.5)][:, 0]).round(6))
    assert list(at_a_half) == pytest.approx([0.22, 0.44])  # a step from one share to the next
    assert drawing.points["mean_age"].item() == pytest.approx(12.5 / 17.5)
    assert drawing.points["max_age"].item() == 3


def test_the_timeline_shows_the_first_updates_as_the_trace_has_them(sweeps) -> None:
    points = draw("timeline", sweeps["small"]).points
    assert set(points["process"]) == {"rollout-0", "trainer-0"}
    trained = points[(points["cell"] == "areal-grpo-k4-dec0-s0") & (points["span"] == "train")]
    assert list(trained["start"]) == pytest.approx([0.001 * update + 0.0004 for update in range(8)])
    assert points["end"].max() == pytest.approx(0.0078)


def test_cells_with_several_attempts_and_a_lag_that_is_made_have_no_speed(tmp_path: Path) -> None:
    one, two, three = a_cell(seed=0), a_cell(seed=1), a_cell(mode="lagged")
    paths = {
        one: write_cell(tmp_path, one),
        two: write_cell(tmp_path, two, attempts=2),
        three: write_cell(tmp_path, three),
    }
    for name in ("fig5c_throughput_vs_staleness", "wall_clock_vs_mode", "fig_pareto", "fig_updates_per_sec"):
        assert list(draw(name, collect(paths)).points["cell"]) == [one.id]


@pytest.mark.parametrize("name", FIGURES)
def test_a_backend_that_is_no_model_is_named_and_names_are_no_formulas(tmp_path: Path, name: str) -> None:
    cell = a_cell(dataset="jsonl:$\\frac{$.jsonl", arm="a$\\b$")
    cells = collect({cell: write_cell(tmp_path, cell, metrics=False, backend="tabular")})
    title = draw(name, cells).figure.get_suptitle()
    assert "backend tabular: no language model" in title
    assert r"jsonl:\$\frac{\$.jsonl" in title  # each dollar sign is only that
