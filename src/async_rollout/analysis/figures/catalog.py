"""Which figures there are, what they show, and how one is written to disk.

Captions are plain sentences: they stand in HTML, in reStructuredText and in Markdown.
"""

import hashlib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.links import link
from async_rollout.config.report import ReportConfig

DEFAULT_THRESHOLD = 0.10


@dataclass(frozen=True)
class Entry:
    """`module` of this package holds a function of the figure's name."""

    module: str
    title: str
    caption: str


_POINTS = (
    "Small hollow points: one cell each. Three seeds or more: filled point, the mean, with its 95 % interval "
    "(Student's t); fewer have no interval."
)
_CURVES = (
    "Three seeds or more: mean, with the 95 % interval (Student's t) as a band; fewer, or seeds that ended "
    "at different updates: each seed by itself. Intervals are cut where the axis ends."
)
_TIMED = (
    "Cells that needed more than one attempt are left out, and so is mode lagged, whose delay is made on "
    "purpose."
)
_SYNC = "Synchronous runs use the resources of their own configuration; K = 0 is not a synchronous baseline."

FIGURES = {
    "fig_overview_poster": Entry(
        "poster",
        "Overview",
        "The algorithm with most cells, to be printed 33 cm wide or wider. a: held-out pass rate by updates. "
        "b: share of trained tokens by age, each step as wide as its share; red: the bound K. c: trained "
        "tokens a second by K. d: held-out pass rate of the last version by K. e: both together, the "
        "frontier ringed; hollow: mode async. f: what each process did during the first updates of one "
        "run. " + _POINTS,
    ),
    "fig_reward_curves": Entry(
        "learning",
        "Training reward against updates",
        "Mean reward of the trained samples, over twelve windows of updates. A panel for each mode, "
        "algorithm and objective or arm, a line for each K; the same synchronous runs stand in each panel of "
        "their algorithm and arm. " + _CURVES,
    ),
    "fig_pass_rate_curves": Entry(
        "learning",
        "Pass rate against updates",
        "Left: pass rate on held-out tasks, one sample a task. Right: on training samples, pooled over "
        "twelve windows of updates. A row for each mode, algorithm and objective or arm, a line for each K; "
        "the same synchronous runs stand in each row of their algorithm and arm. " + _CURVES,
    ),
    "fig_pareto": Entry(
        "pareto",
        "Throughput against pass rate",
        "Trained tokens a second of wall clock against the held-out pass rate of the last version. Large "
        "points: mean over seeds, from three on with the 95 % interval (Student's t) of both; small: one "
        "cell each. Colors: K. Shapes: objective or arm. Ringed and joined: the frontier, means that no "
        "other mean reaches in both; points nearer to each other than their intervals are not told apart. "
        + f"{_TIMED} {_SYNC}",
    ),
    "fig_time_to_threshold": Entry(
        "threshold",
        "Time to threshold",
        "Updates, and seconds of wall clock, until an evaluation first had the pass rate that the sweep's "
        "report.pass_threshold names. Evaluations are some updates apart, so equal values are common. Cells "
        "that never got there stand at the right edge, and their group has no mean. Seconds: "
        + f"{_TIMED} {_POINTS}",
    ),
    "fig_staleness_violin": Entry(
        "staleness",
        "Staleness of trained tokens",
        "Share of trained tokens by age in policy versions, measured when their training step began: each "
        "step is as wide as the share of its age, the widest of a violin filling its place. Every cell "
        "counts the same, whatever it learns and however many tokens it has. White points: mean of one cell. "
        "Red lines: the bound K.",
    ),
    "fig_reward_per_ktoken": Entry(
        "throughput",
        "Reward for generated tokens",
        "Sum of the rewards of trained samples, for a thousand generated tokens; tokens that were dropped "
        f"count as cost. By K, a line for each objective or arm. {_POINTS}",
    ),
    "fig_updates_per_sec": Entry(
        "throughput",
        "Updates a second",
        f"Commits a second of wall clock by K. {_POINTS} {_TIMED} {_SYNC}",
    ),
    "fig5a_naive_learning_curves": Entry(
        "learning",
        "Learning with naive PPO",
        "Held-out pass rate by updates with objective behavior, which clips against the stale policy that "
        f"sampled (AReaL, Fig. 5a); a line for each K. {_CURVES}",
    ),
    "fig5b_decoupled_learning_curves": Entry(
        "learning",
        "Learning with the decoupled objective",
        "Held-out pass rate by updates with objective decoupled, base arm, which clips against the policy "
        "just before the update and corrects for staleness by a weight (AReaL, Fig. 5b); a line for each K. "
        f"{_CURVES}",
    ),
    "fig5c_throughput_vs_staleness": Entry(
        "throughput",
        "Throughput against allowed staleness",
        f"Tokens consumed by training a second of wall clock, by K (AReaL, Fig. 5c). {_POINTS} {_TIMED} "
        f"{_SYNC}",
    ),
    "fig6b_interruptible_throughput": Entry(
        "interruption",
        "Throughput with and without interruption",
        "Generated and trained tokens a second by K, for cells whose configurations differ in rollout.update "
        "alone: samples under way go on under new weights (interrupt), or end under the old ones while their "
        f"slots stay empty (drain; AReaL, Fig. 6b). {_POINTS} {_TIMED}",
    ),
    "reward_vs_staleness": Entry(
        "tolerance",
        "Pass rate against allowed staleness",
        "Held-out pass rate of the last version, one sample a task, by K; a line for each objective or arm. "
        f"{_POINTS} Live and decoupled differ in two things at once: behavior is the comparison that "
        "isolates the decoupling.",
    ),
    "wall_clock_vs_mode": Entry(
        "modes",
        "Wall clock by mode",
        f"Seconds from all processes ready to the last commit. {_POINTS} {_TIMED} {_SYNC}",
    ),
    "updates_vs_mode": Entry(
        "modes",
        "Updates in equal time",
        "Updates that changed the policy by the time at which the fastest run had done all of its own. "
        f"Commits without a trainable token and those of the critic alone are not counted. {_POINTS} "
        f"{_TIMED} {_SYNC}",
    ),
    "queue_depth_traces": Entry(
        "queues",
        "Groups in the pipeline",
        "Prompt groups that waited for the trainer, and on top of them those being sampled or judged, as "
        "each commit saw them. One cell for each mode and K (n = 1, no interval), named above its panel. "
        "Dashed: the (K + 1) B groups that K admits, B those of one update.",
    ),
    "timeline": Entry(
        "timeline",
        "Who was busy when",
        "What each process did during the first eight updates of one cell of each mode (n = 1), the one with "
        "the largest K that is a number. Gaps: neither computing nor waiting was recorded.",
    ),
    "busy_fractions": Entry(
        "busy",
        "Busy share of the wall clock",
        "Share of the wall clock that each kind of process spent computing, averaged over processes of a "
        f"kind, of a cell's last attempt. {_POINTS}",
    ),
    "algorithm_curves": Entry(
        "algorithms",
        "Algorithms",
        "Held-out pass rate by updates of SAO and its baselines, for each mode at the largest K that several "
        "have. Base arms take their recipe's batch: with one sample a prompt they train on fewer "
        "trajectories an update. Panels at equal trajectories hold every cell with as many samples an "
        "update. " + _CURVES,
    ),
    "importance_weights": Entry(
        "tolerance",
        "Importance weights",
        "By K: effective sample size of the importance weights as a share of tokens (1: all weights equal), "
        f"and share of tokens masked for a weight beyond the limit; both are means over updates. {_POINTS}",
    ),
}


def write_figure(name: str, cells: Cells, directory: Path, report: ReportConfig | None = None) -> None:
    """Draw one figure of one dataset's cells: `name`.png, `name`.svg, and its points as `name`.csv.

    `report` holds the threshold of the dataset. Raises KeyError if there is no figure of that name.
    """
    from async_rollout.analysis.figures.drawing import Scene, save
    from async_rollout.analysis.figures.style import styled

    draw = getattr(import_module(f"{__package__}.{FIGURES[name].module}"), name)
    (dataset,) = cells.datasets
    threshold = (report or ReportConfig()).pass_threshold.get(dataset, DEFAULT_THRESHOLD)
    links = {cell: link(cells.directory(cell), directory) for cell in cells.expected}
    with styled():
        save(draw(Scene(cells, links, threshold)), directory / name)


def style_digest() -> str:
    """Hex digits that change with what figures are drawn by, their captions apart."""
    own = Path(__file__)
    drawing = [file.read_bytes() for file in sorted(own.parent.glob("*.py")) if file != own]
    return hashlib.sha256(b"\0".join(drawing)).hexdigest()[:12]
