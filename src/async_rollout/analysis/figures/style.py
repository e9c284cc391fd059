"""How the figures look.

Objectives and arms have Okabe and Ito's colors, which the color-blind can tell apart; bounds K, which
have an order, have viridis from dark to light. Markers and line styles repeat what colors say, so that
print in gray can be read. Sizes are those of the printed page: text is 8 points or more.
"""

from contextlib import AbstractContextManager

import matplotlib as mpl
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
MARKERS = ("o", "s", "^", "D", "v", "P", "h", "*")
LINES = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))
SYNC = "#555555"
MODE_COLORS = {"sync": SYNC, "areal": COLORS[0], "async": COLORS[1], "lagged": COLORS[2]}
BAD = "#b00020"  # collapsed, missing, bounds
FAINT = "#666666"
WIDTH = 7.2  # inches: a page with margins
THOUSANDS = FuncFormatter(lambda value, _: f"{value:,.6f}".rstrip("0").rstrip("."))
_STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.title_fontsize": 8.5,
    "legend.handlelength": 2.6,
    "svg.hashsalt": "async-rollout",
    "svg.fonttype": "path",
    "figure.dpi": 100,
}


def styled() -> AbstractContextManager:
    """The settings under which figures are drawn and saved."""
    return mpl.rc_context(_STYLE)


def plain(text: str) -> str:
    """Text in which a dollar sign begins no formula."""
    return text.replace("$", r"\$")


def sample(label: str, **look) -> Line2D:
    """An entry of a legend."""
    return Line2D([], [], label=plain(label), **({"linestyle": "none"} | look))


def nth_look(index: int) -> dict:
    """Color, marker and line style of the n-th objective, arm or algorithm."""
    return {
        "color": COLORS[index % len(COLORS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": LINES[index % len(LINES)],
    }


def schedule_look(mode: str, k: int | str, ks: list) -> dict:
    """Color, marker and line style of a schedule: sync in gray, others by K among all `ks`."""
    if mode == "sync":
        return {"color": SYNC, "marker": "x", "linestyle": LINES[1]}
    index = ks.index(k)
    shade = 0.45 if len(ks) == 1 else 0.8 * index / (len(ks) - 1)  # the lightest are too light on white
    color = mpl.colors.to_hex(mpl.colormaps["viridis"](shade))
    return nth_look(index) | {"color": color}


def schedule_label(mode: str, k: int | str) -> str:
    """`sync`, or mode and K."""
    return mode if mode == "sync" else f"{mode}, K = {k_label(k)}"


def k_label(k: int | str) -> str:
    """`inf` as the sign."""
    return "∞" if k == "inf" else str(k)
