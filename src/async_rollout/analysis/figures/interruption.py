"""What interrupting running samples for new weights gains over waiting for them (AReaL, Fig. 6b)."""

import json

from async_rollout.analysis.figures import panels, style
from async_rollout.analysis.figures.against_k import Measure, table
from async_rollout.analysis.figures.drawing import Drawing, Scene, nothing
from async_rollout.analysis.figures.marks import Groups, Mark, count_text, draw_groups
from async_rollout.analysis.figures.throughput import THROUGHPUT
from async_rollout.analysis.series import bounds, is_timed, keep
from async_rollout.config.cells import Cell
from async_rollout.records.summary import Summary

TITLE = "Throughput with and without interruption"
MISSING = (
    "no two finished cells differ in rollout.update alone (interrupt, drain)",
    "arms: {drain: {rollout.update: drain}} beside mode areal has them (config/paper_tiny.yaml)",
)
KINDS = ("interrupt", "drain", "keep_kv")
GENERATED = Measure("generated_tokens_per_sec", "generated tokens / s", lambda s: s.generated_tokens_per_sec)
MEASURES = (GENERATED, THROUGHPUT)


def fig6b_interruptible_throughput(scene: Scene) -> Drawing:
    """Tokens a second by K for cells that differ in `rollout.update` alone: generated, and trained."""
    timed = keep(scene.cells, lambda cell, summary: is_timed(cell, summary) and cell.mode != "sync")
    families: dict[str, list[tuple[Cell, Summary]]] = {}
    for cell, summary in timed:
        families.setdefault(_apart_from_update(summary), []).append((cell, summary))
    compared = [f for f in families.values() if len({_update(summary) for _, summary in f}) > 1]
    if not compared:
        return nothing(scene, TITLE, *MISSING)
    looks = {kind: style.nth_look(number) for number, kind in enumerate(KINDS)}
    figure, axes = panels.grid(scene, TITLE, 2 * len(compared), per_row=2)
    ks = bounds(scene.cells)
    for panel, (family, measure) in zip(axes, [(f, m) for f in compared for m in MEASURES], strict=False):
        groups: Groups = {}
        for cell, summary in family:
            mark = Mark(cell, summary, measure.value(summary))
            groups.setdefault((_update(summary), cell.k), []).append(mark)
        draw_groups(panel, groups, KINDS, ks, scene.links, looks, joined=ks)
        cell, summary = family[0]
        panel.set_title(f"{cell.mode}, {cell.algorithm}, {summary.objective}\n"
                        f"{count_text(map(len, groups.values()))}")  # fmt: skip
        panel.set_xticks(range(len(ks)), [style.k_label(k) for k in ks])
        panel.set_ylabel(measure.label)
        panel.set_ylim(bottom=0)
        panel.yaxis.set_major_formatter(style.THOUSANDS)
    for panel in axes[-2:]:
        panel.set_xlabel("K (policy versions)")
    drawn = {_update(summary) for family in compared for _, summary in family}
    hollow = {"markersize": 4.5, "markerfacecolor": "white"}
    panels.legend(
        figure, [style.sample(k, **looks[k], **hollow) for k in KINDS if k in drawn], "rollout.update"
    )
    seeds = [seed for family in compared for seed in family]
    points = table(MEASURES, seeds)
    points.insert(1, "update", [_update(summary) for _, summary in seeds])
    return Drawing(figure, points)


def _update(summary: Summary) -> str:
    """How rollout workers take new weights."""
    return summary.config.get("rollout", {}).get("update", KINDS[0])


def _apart_from_update(summary: Summary) -> str:
    """The configuration without what may differ: seed, K, the arm's name, and `rollout.update`."""
    config = {key: value for key, value in summary.config.items() if key not in ("seed", "k", "arm")}
    config["rollout"] = {k: v for k, v in config.get("rollout", {}).items() if k != "update"}
    return json.dumps(config, sort_keys=True)
