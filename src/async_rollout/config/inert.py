"""Keys that were set and that nothing will read: whoever set them expects a difference."""

from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from async_rollout.config.axes import OVERLAPPING
from async_rollout.config.cells import cells, resolve
from async_rollout.config.keys import known_keys
from async_rollout.config.objective import READERS
from async_rollout.config.run import Blocks, RunConfig

if TYPE_CHECKING:
    from async_rollout.config.sweep import SweepConfig

_DEFAULTS = {name: field.get_default(call_default_factory=True) for name, field in known_keys(Blocks).items()}
_OVERLAP = (
    "workers",
    "devices",
    "prefetch_groups",
    "update",
    "min_decode_steps",
    "max_recompute_share",
    "sample_timeout_sec",
    "sample_attempts",
    "threads",
    "weights",
)


def inert_keys(sweep: "SweepConfig") -> list[str]:
    """Keys away from their default that no cell reads, and `arms.ARM.KEY` that no cell of the arm reads."""
    inert: dict[str, list[set[str]]] = {}
    for cell in {(c.mode, c.algorithm, c.arm, c.k, c.decoupled): c for c in cells(sweep)}.values():
        run = resolve(sweep, cell)
        changed = {name for name, default in _DEFAULTS.items() if attrgetter(name)(run) != default}
        inert.setdefault(cell.arm, []).append(changed & set(unread(run)))
    if not inert:
        return []
    everywhere = set.intersection(*(found for arm in inert.values() for found in arm))
    own = [
        f"arms.{arm}.{key}"
        for arm in sweep.arms
        if arm in inert
        for key in set.intersection(*inert[arm]) & sweep.arms[arm].keys()
    ]
    return sorted(everywhere) + sorted(own)


def _unread_advantages(run: RunConfig) -> Iterator[str]:
    if run.advantage.name != "running_mean":
        yield "advantage.window"
    if run.advantage.name == "running_mean" or (run.advantage.name, run.advantage.whiten) == ("gae", "none"):
        yield "advantage.epsilon"
    if run.advantage.name != "gae":
        yield from ("advantage.alpha", "advantage.whiten", "advantage.bootstrap")
        yield from (name for name in _DEFAULTS if name.startswith("critic."))


def unread(run: RunConfig) -> Iterator[str]:
    """Keys of a run that have no effect, whatever their value."""
    yield from (key for key, readers in READERS.items() if run.objective.name not in readers)
    if run.objective.weight in ("exact", "omit"):
        yield "objective.weight_limit"
    yield from _unread_advantages(run)
    if run.kl.coef == 0:
        yield "kl.reference"
    if run.collapse.windows == 0:
        yield from ("collapse.window", "collapse.share")
    if run.mode not in OVERLAPPING:
        yield from (f"rollout.{name}" for name in _OVERLAP)
        yield "staleness.order"
    elif run.rollout.update == "drain":
        yield from ("rollout.min_decode_steps", "rollout.max_recompute_share")
    if run.mode != "areal":
        yield from ("train.workers", "train.parallel")
    if run.mode == "async":
        yield "rollout.threads"  # the process has train.threads
    if run.model.backend != "causal_lm" or run.model.id != "embedded":
        yield from (name for name in _DEFAULTS if name.startswith("warm_start."))
    if (run.sampling.top_p, run.sampling.top_k) == (1.0, 0):
        yield "sampling.allow_biased"
