"""Bounded staleness: which group may start, and which groups may be trained.

Admission limits how many groups are under way; the orders of hand-over `deadline` and `strict`
see to it that every one of them can still be trained within K versions of its oldest token,
so that nothing need be dropped; under `completed` what is too old must be. Under each, no
trained token is older than K. Pure functions of counts and versions; a version bound of a
group never falls.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from async_rollout.config.rollout import Order

Aged = tuple[int, int]
"""(oldest version, number) of a group."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What bounds a run: B groups a commit, K versions, a number of commits."""

    groups: int
    staleness: float
    updates: int


def may_submit(under_way: int, version: int, bounds: Bounds) -> bool:
    """True if one more group may start at this policy version.

    `under_way` counts groups submitted and neither rejected nor dropped since the run began,
    trained ones included (AReaL, arXiv:2505.24298, Eq. 3, with B counted in groups; the
    bound on updates keeps the run from drawing what nothing will train on).
    """
    return under_way < min(version + bounds.staleness + 1, bounds.updates) * bounds.groups


def too_old(oldest_version: int, version: int, bounds: Bounds) -> bool:
    """True if a group with this oldest token may no longer be trained at `version`."""
    return version - oldest_version > bounds.staleness


def choose(
    complete: Sequence[Aged], running: Sequence[Aged], version: int, bounds: Bounds, order: Order
) -> list[int] | None:
    """Numbers of the B groups to train at `version`, or None to wait.

    `complete` holds groups that can be trained (oldest version, number); `running` those under
    way, with a lower bound of their oldest version. By `order`:

    - `deadline`: the oldest B complete groups, if for every version u the groups left over whose
      oldest token is ≤ u number at most (u + K - version) · B: the later batches can then take
      each of them in time. Nothing is ever dropped.
    - `completed`: the oldest B complete groups at once. Slow groups get too old and are dropped,
      so what is trained is biased towards short answers.
    - `strict`: the B groups submitted first. Admission alone keeps them young enough.
    """
    if len(complete) < bounds.groups:
        return None
    ordered = sorted(complete) if order != "strict" else sorted(complete, key=_number)
    chosen, left = ordered[: bounds.groups], ordered[bounds.groups :]
    if order == "deadline" and not _in_time([oldest for oldest, _ in [*left, *running]], version, bounds):
        return None
    if order == "strict" and any(number < _number(chosen[-1]) for _, number in running):
        return None
    return [number for _, number in chosen]


def _number(group: Aged) -> int:
    return group[1]


def _in_time(oldest: Sequence[int], version: int, bounds: Bounds) -> bool:
    if not oldest or bounds.staleness == float("inf"):
        return True
    versions, counts = np.unique(np.asarray(oldest), return_counts=True)
    room = (versions + bounds.staleness - version) * bounds.groups
    return bool((np.cumsum(counts) <= room).all())
