"""Where a reader finds each table and figure: the same chapters in report, index and `snakemake --report`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A chapter of a dataset, with the names of its tables and figures in reading order."""

    name: str  # as in anchors
    title: str
    about: str
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()


CHECKS = Section("checks", "Checks", "What to know before believing a number.", ("checks",))
OTHER = Section("more", "More", "What no other chapter holds.")
SECTIONS = (
    CHECKS,
    Section(
        "headline",
        "Headline",
        "The seeds of each combination together.",
        ("mode_aggregate",),
        ("fig_overview_poster",),
    ),
    Section(
        "throughput",
        "Throughput",
        "How fast the trainer consumes tokens, and what keeps the parts waiting.",
        ("speedups", "throughput_paper_comparison"),
        (
            "fig5c_throughput_vs_staleness",
            "fig6b_interruptible_throughput",
            "fig_pareto",
            "fig_updates_per_sec",
            "updates_vs_mode",
            "wall_clock_vs_mode",
            "busy_fractions",
            "queue_depth_traces",
            "timeline",
        ),
    ),
    Section(
        "staleness",
        "Staleness",
        "How old the trained tokens were, and what that does to learning.",
        ("table2_staleness_vs_pass_rate", "staleness_laboratory"),
        (
            "fig_staleness_violin",
            "reward_vs_staleness",
            "fig5a_naive_learning_curves",
            "fig5b_decoupled_learning_curves",
            "importance_weights",
        ),
    ),
    Section(
        "learning",
        "Learning",
        "What was learned, by updates and by tokens.",
        (),
        (
            "fig_pass_rate_curves",
            "fig_reward_curves",
            "fig_time_to_threshold",
            "fig_reward_per_ktoken",
        ),
    ),
    Section(
        "algorithms",
        "Algorithms",
        "The single-rollout algorithm SAO beside its baselines, as far as the sweep holds them.",
        ("windowed_accuracy",),
        ("algorithm_curves",),
    ),
    Section(
        "failures",
        "Failures",
        "Cells that are missing, damaged or collapsed, or were restarted.",
        ("failures",),
    ),
    Section(
        "cells",
        "Every cell",
        "A row for each cell that the sweep asks for.",
        ("summary_headline", "analysis_aggregated"),
    ),
    OTHER,
)


def section_of(name: str) -> Section:
    """The chapter of a table or figure; `OTHER` for a name that none lists."""
    return next((s for s in SECTIONS if name in s.tables or name in s.figures), OTHER)


def in_order(names: list[str]) -> dict[Section, list[str]]:
    """The given tables or figures by chapter, in reading order; chapters without any are left out."""
    listed = {name: place for place, name in enumerate(n for s in SECTIONS for n in (*s.tables, *s.figures))}
    found: dict[Section, list[str]] = {section: [] for section in SECTIONS}
    for name in sorted(names, key=lambda name: listed.get(name, len(listed))):
        found[section_of(name)].append(name)
    return {section: some for section, some in found.items() if some}
