"""Checks of a sweep's settings; nothing is loaded."""

from collections.abc import Iterator

from async_rollout.config.axes import OVERLAPPING
from async_rollout.config.cells import cells, config_hash, inert_warnings, resolve
from async_rollout.config.inert import inert_keys
from async_rollout.config.run import RunConfig
from async_rollout.config.sweep import SweepConfig
from async_rollout.doctor.finding import Finding, judged


def settings_checks(sweep: SweepConfig) -> Iterator[Finding]:
    """Cells, inert keys, bounds that cannot bind, slots."""
    runs = [resolve(sweep, cell) for cell in cells(sweep)]
    different = len({config_hash(run) for run in runs})
    text = f"{len(runs)} cells, each resolved, {different} different configurations"
    yield judged("cells", bool(runs) and different == len(runs), text)
    keys = inert_keys(sweep)
    yield judged(
        "inert keys", not keys, "nothing reads " + ", ".join(keys) if keys else "every key set is read"
    )
    unbound = inert_warnings(sweep)
    yield judged("bounds", not unbound, "; ".join(unbound) or "every K can bind within its run", "warn")
    crowded = sorted({text for run in runs if (text := _crowded(run))})
    fine = "slots leave room within K, or nothing overlaps"
    yield judged("slots", not crowded, "; ".join(crowded) or fine, "warn")


def _crowded(run: RunConfig) -> str:
    """Empty unless the slots hold more than half of the samples that K lets be under way beyond a batch.

    Then the slots alone make up the staleness: samples wait for admission in place of being decoded.
    """
    if run.mode not in OVERLAPPING or run.k in (0, "inf"):
        return ""
    slots = run.slots * run.rollout.workers
    room = run.k * run.batch.groups * run.batch.group_size / 2
    if slots <= room:
        return ""
    return f"K = {run.k}: {slots} slots (rollout.slots x rollout.workers) are more than K·B·G/2 = {room:g}"
