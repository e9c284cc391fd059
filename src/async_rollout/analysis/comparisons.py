"""Held-out pass rates of two variants, paired by seed, as sentences."""

from collections.abc import Iterator

import pandas as pd

from async_rollout.analysis.phrases import variant, verdict
from async_rollout.analysis.statistics import estimate, paired_difference

BASELINE = "grpo"  # other algorithms are compared with it
AT = ["mode", "algorithm", "arm", "k", "decoupled"]
NAIVE, CORRECTED = "behavior", "decoupled"  # AReaL's Fig. 5a and 5b


def with_sync(done: pd.DataFrame, mode: str, k: int) -> list[str]:
    """Each variant of `mode` at K = `k` against sync of the same algorithm and arm."""
    said = []
    for ours in _groups(done[(done["mode"] == mode) & (done["k"] == k)]):
        first = ours.iloc[0]
        theirs = done[
            (done["mode"] == "sync")
            & (done["algorithm"] == first["algorithm"])
            & (done["arm"] == first["arm"])
        ]
        if theirs.empty:
            continue
        objective = theirs.iloc[0]["objective"]
        differ = (
            ""
            if objective == first["objective"]
            else f" (sync has the {objective} objective: the schedule is not all that differs)"
        )
        text = _difference(ours, theirs, f"{mode} with K = {k}", "sync")
        said.append(f"Learning, {variant(first)}: {text}{differ}.")
    return said


def objectives(done: pd.DataFrame) -> list[str]:
    """Naive PPO beside the decoupled objective at the largest K that both have, for each mode."""
    said = []
    for (mode, algorithm), cells in done[done["mode"] != "sync"].groupby(["mode", "algorithm"], sort=False):
        sides = [_plain(cells[cells["objective"] == name], name) for name in (CORRECTED, NAIVE)]
        shared = set(sides[0]["k"]) & set(sides[1]["k"]) - {0}
        if not shared:
            continue
        k = max(shared, key=float)
        text = _difference(*(side[side["k"] == k] for side in sides), CORRECTED, NAIVE)
        said.append(f"Objectives, {mode}, {algorithm}, K = {k}: {text}.")
    return said


def algorithms(done: pd.DataFrame) -> list[str]:
    """Each algorithm's arms against `BASELINE` with the same mode, K and arm, or else its base arm."""
    if done["algorithm"].nunique() < 2:
        return []
    if BASELINE not in set(done["algorithm"]):
        return [f"No {BASELINE} cell has finished, so nothing compares the algorithms."]
    said = []
    for ours in _groups(done[done["algorithm"] != BASELINE]):
        first = ours.iloc[0]
        base = done[
            (done["algorithm"] == BASELINE) & (done["mode"] == first["mode"]) & (done["k"] == first["k"])
        ]
        base = base[base["decoupled"] == first["decoupled"]]
        same = base[base["arm"] == first["arm"]]
        theirs = base[base["arm"] == "base"] if same.empty else same
        if theirs.empty:
            continue
        arms = "" if len(same) else " (against arm base: the algorithm is not all that differs)"
        text = _difference(ours, theirs, first["algorithm"], BASELINE)
        said.append(f"{first['mode']}, K = {first['k']}, arm {first['arm']}: {text}{arms}.")
    return said


def _difference(ours: pd.DataFrame, theirs: pd.DataFrame, our: str, their: str) -> str:
    """Held-out pass rates of the last version, and their difference over the seeds that both have."""
    a, b = _ends(ours), _ends(theirs)
    found = paired_difference(a, b)
    if not found.n:
        return f"no seed was evaluated under both {our} and {their}"
    seeds = sorted(a.keys() & b.keys())
    means = [estimate([side[seed] for seed in seeds]).mean for side in (a, b)]
    return (
        f"{our} ended at a held-out pass rate of {means[0]:.3f}, {their} at {means[1]:.3f}: a difference of "
        f"{found.mean:+.3f}, {verdict(found, 0.0, '+.3f')}"
    )


def _ends(cells: pd.DataFrame) -> dict[int, float]:
    """Held-out pass rate of the last version by seed."""
    known = cells.dropna(subset=["eval_sampled_last"])
    return dict(zip(known["seed"].astype(int), known["eval_sampled_last"].astype(float), strict=True))


def _plain(cells: pd.DataFrame, objective: str) -> pd.DataFrame:
    """The cells of an objective in its own arm or in the base arm: arms that change more are left out."""
    return cells[cells["arm"].isin(["base", objective])]


def _groups(done: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Cells that differ in seed only."""
    for _, cells in done.groupby(AT, sort=False):
        yield cells
