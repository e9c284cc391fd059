"""Bounded staleness: which group may start, and which groups may be trained.

Admission limits how many groups are under way; the hand-over order sees to it that every
one of them can still be trained within K versions of its oldest token. Together: no
trained token is older than K, and nothing need be dropped. Pure functions of counts and
versions; a version bound of a group never rises while it waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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
    complete: Sequence[tuple[int, int]], running: Sequence[int], version: int, bounds: Bounds
) -> list[int] | None:
    """Numbers of the B groups to train at `version`, or None to wait.

    `complete` holds (oldest version, number) of groups that can be trained; `running` holds
    for each group under way a lower bound of its oldest version. The oldest B complete groups
    are chosen, if for every version u the groups left over whose oldest token is ≤ u number at
    most (u + K − version) · B: the later batches can then take each of them in time.
    """
    order = sorted(complete)
    chosen, left = order[: bounds.groups], order[bounds.groups :]
    if len(chosen) < bounds.groups:
        return None
    if not _in_time([oldest for oldest, _ in left] + list(running), version, bounds):
        return None
    return [number for _, number in chosen]


def _in_time(oldest: Sequence[int], version: int, bounds: Bounds) -> bool:
    if not oldest or bounds.staleness == float("inf"):
        return True
    versions, counts = np.unique(np.asarray(oldest), return_counts=True)
    room = (versions + bounds.staleness - version) * bounds.groups
    return bool((np.cumsum(counts) <= room).all())
