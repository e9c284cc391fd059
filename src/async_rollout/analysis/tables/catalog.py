"""Which tables there are, what they show, and how those of one dataset are written."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from async_rollout.config.report import ReportConfig

if TYPE_CHECKING:
    import pandas as pd

    from async_rollout.analysis.collect import Cells


@dataclass(frozen=True)
class Entry:
    """`module` of this package holds a function of the table's name: cells and report to a frame."""

    module: str
    title: str
    caption: str
    endings: tuple[str, ...] = ("csv", "md")


TABLES = {
    "checks": Entry(
        "checks",
        "Checks",
        "What looks wrong or thin, the gravest first. A cell that has not finished is an error when the "
        "sweep is over, and a note while it is under way.",
    ),
    "summary_headline": Entry(
        "headline",
        "Every cell",
        "A row for each cell that the sweep asks for, also for those that have not finished.",
    ),
    "mode_aggregate": Entry(
        "aggregate",
        "Over seeds",
        "Mean ± standard deviation over seeds. Speeds leave out cells that needed more than one attempt.",
    ),
    "table2_staleness_vs_pass_rate": Entry(
        "laboratory",
        "Staleness and pass rate (AReaL, Table 2)",
        "Held-out pass rate, sampled, of the last version and of the best (biased upwards), by objective and "
        "K: mean and 95 % interval over seeds (Student's t; the csv has the bootstrap interval too). "
        "The change is against K = 0 of the same variant, paired by seed; a claim needs three pairs "
        "and both intervals on one side of 0.",
    ),
    "staleness_laboratory": Entry(
        "laboratory",
        "Learning by staleness",
        "Held-out pass rate by objective and K: of the last version, of the best, and the mean over a run's "
        "evaluations, each with its 95 % interval over seeds (Student's t). Evaluated cells only.",
    ),
    "windowed_accuracy": Entry(
        "windows",
        "Training pass rate by window of updates",
        "Training samples solved, of those judged, in each window of updates (report.window; a tenth of the "
        "run where it is not set): pooled within a cell, then mean and 95 % interval over the n seeds that "
        "got so far (Student's t; the csv has the bootstrap interval too).",
    ),
    "speedups": Entry(
        "speed",
        "Speed against sync",
        "Trained tokens a second against sync of the same algorithm and arm (or of the base arm, see column "
        "baseline), paired by seed: geometric mean and 95 % interval (Student's t on logarithms; the csv has "
        "the bootstrap interval too). The ratio compares each on what it computes with, so an asynchronous "
        "run with twice the cores has a head start; the ratio per unit divides by cores or GPUs. Bound: "
        "(G + T) ÷ max(G, T) of the seconds that sync spent on generation and training, what overlap alone "
        "can give where neither gets slower. Overlap: how many of the two were busy at once in the "
        "asynchronous cells. Asynchronous runs at K = 0 are no baseline. Cells that needed more than one "
        "attempt, and pairs from different machines, are left out.",
    ),
    "throughput_paper_comparison": Entry(
        "speed",
        "Throughput by K beside AReaL's Fig. 5c",
        "Trained tokens a second relative to K = 0 of the same variant, paired by seed: geometric mean and "
        "95 % interval (Student's t on logarithms; the csv has the bootstrap interval too), beside the "
        "ratios that AReaL published for its own models and cluster. 0 seeds: the sweep did not ask for "
        "this K.",
    ),
    "failures": Entry(
        "failures",
        "Failures",
        "Cells that are missing, failed, collapsed, damaged, or needed more than one attempt, and why.",
    ),
    "analysis_aggregated": Entry(
        "measures",
        "Every measure with its statistics",
        "A row for each group of seeds and each measure: n, mean, standard deviation, 95 % intervals "
        "(Student's t and percentile bootstrap). Speeds leave out cells that needed more than one "
        "attempt.",
        ("csv", "md", "json"),
    ),
}


def table_files() -> list[str]:
    """Names of all files that `write_tables` makes."""
    return [f"{name}.{ending}" for name, entry in TABLES.items() for ending in entry.endings]


def build_table(name: str, cells: "Cells", report: ReportConfig) -> "pd.DataFrame":
    """One table of these cells as numbers; `display` shows it. KeyError if there is none of that name."""
    build = getattr(import_module(f"{__package__}.{TABLES[name].module}"), name)
    return build(cells, report)


def build_tables(cells: "Cells", report: ReportConfig) -> "Iterator[tuple[str, pd.DataFrame]]":
    """All tables by name, in the order in which a reader wants them."""
    for name in TABLES:
        yield name, build_table(name, cells, report)


def write_tables(cells: "Cells", directory: Path, report: ReportConfig) -> None:
    """Every table of one dataset's cells in `directory`."""
    from async_rollout.analysis.tables.writing import write_records, write_table

    for name, frame in build_tables(cells, report):
        write_table(frame, directory / name)
        if "json" in TABLES[name].endings:
            write_records(frame, directory / f"{name}.json")
