"""How much faster training gets when staleness is allowed (AReaL, Fig. 5c)."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes

from async_rollout.analysis.collect import Cells
from async_rollout.analysis.figures import style
from async_rollout.analysis.series import bounds, modes, variant_of, variants
from async_rollout.analysis.statistics import CLAIM_N, estimate
from async_rollout.config.cells import Cell

TITLE = "Throughput against allowed staleness"


def fig5c_throughput_vs_staleness(cells: Cells, links: Mapping[Cell, str]) -> style.Drawing:
    """Trained tokens a second by K: a line for each mode and variant, sync as level lines."""
    groups: dict[tuple, list] = {}
    for cell, summary in cells.done():
        if summary.attempts == 1 and cell.mode != "lagged":  # there K costs and saves no time
            groups.setdefault((cell.mode, variant_of(summary), cell.k), []).append((cell, summary))
    if not groups:
        return style.nothing(cells, TITLE, "no cell has finished at its first attempt")
    ks, looks = bounds(cells), variants(cells)
    lines = [(mode, v) for mode in modes(cells) for v in looks if any(g[:2] == (mode, v) for g in groups)]
    apart = [line for line in lines if line[0] != "sync"]
    figure = style.new_figure(7.2, 4.6)
    style.heading(figure, TITLE, cells)
    axes = figure.add_subplot()
    handles = []
    for mode, variant in lines:
        shape = looks.index(variant)
        look = {"color": style.MODE_COLORS[mode], "linestyle": style.LINES[shape % len(style.LINES)]}
        counts = sorted({len(seeds) for g, seeds in groups.items() if g[:2] == (mode, variant)})
        n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
        label = f"{mode}, {variant.label(looks)}, {n}"
        if mode == "sync":
            _level(axes, groups[mode, variant, 0], links, look)
            handles.append(style.sample(label + " (its own resources)", **look))
            continue
        marker = style.MARKERS[shape % len(style.MARKERS)]
        shift = min(0.09, 0.5 / len(apart)) * (apart.index((mode, variant)) - (len(apart) - 1) / 2)
        _line(axes, {k: groups.get((mode, variant, k), []) for k in ks}, shift, links, look, marker)
        handles.append(style.sample(label, **look, marker=marker, markersize=5))
    axes.set_xticks(range(len(ks)), [style.k_label(k) for k in ks])
    axes.set_xlim(-0.6, max(len(ks), 1) - 0.4)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("K: largest staleness allowed (policy versions)")
    axes.set_ylabel("trained tokens a second")
    figure.legend(handles=handles, loc="outside lower center", ncols=2 if len(handles) > 2 else 1)
    return style.Drawing(figure, _points(groups))


def _line(axes: Axes, by_k: dict, shift: float, links: Mapping[Cell, str], look: dict, marker: str) -> None:
    """Points of each seed, and their means joined."""
    places, means = [], []
    for place, seeds in enumerate(by_k.values()):
        if not seeds:
            continue
        x = place + shift
        speeds = [summary.trained_tokens_per_sec for _, summary in seeds]
        style.clear_points(
            axes,
            [x] * len(seeds),
            speeds,
            [links[cell] for cell, _ in seeds],
            s=13,
            marker=marker,
            facecolor="white",
            edgecolor=look["color"],
            linewidth=0.8,
            zorder=3,
        )
        places.append(x)
        means.append(estimate(speeds))
    axes.plot(places, [m.mean for m in means], **look, linewidth=1.4, alpha=0.8)
    sure = [(x, m) for x, m in zip(places, means, strict=True) if m.n >= CLAIM_N]
    if sure:
        half = [(m.high - m.low) / 2 for _, m in sure]
        axes.errorbar(
            [x for x, _ in sure],
            [m.mean for _, m in sure],
            half,
            fmt=marker,
            color=look["color"],
            markersize=4.5,
            elinewidth=1,
            capsize=2.5,
        )


def _level(axes: Axes, seeds: list, links: Mapping[Cell, str], look: dict) -> None:
    """The mean of the synchronous runs, their interval, and a mark at the left edge for each."""
    speeds = [summary.trained_tokens_per_sec for _, summary in seeds]
    mean = estimate(speeds)
    axes.axhline(mean.mean, **look, linewidth=1.3)
    if mean.n >= CLAIM_N:
        axes.axhspan(mean.low, mean.high, color=style.SYNC, alpha=0.12, linewidth=0)
    style.clear_points(
        axes,
        [-0.52] * len(seeds),
        speeds,
        [links[cell] for cell, _ in seeds],
        s=16,
        marker="x",
        color=style.SYNC,
        linewidth=1,
        zorder=3,
    )


def _points(groups: dict) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "cell": cell.id,
            "mode": cell.mode,
            "k": cell.k,
            "seed": cell.seed,
            "trained_tokens_per_sec": summary.trained_tokens_per_sec,
        }
        for seeds in groups.values()
        for cell, summary in seeds
    )
