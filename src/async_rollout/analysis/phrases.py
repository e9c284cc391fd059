"""The words for an estimate: its interval, its n, and whether a difference may be claimed."""

import math
from collections.abc import Mapping, Sequence

from async_rollout.analysis.groups import PARTS
from async_rollout.analysis.statistics import CLAIM_N, Claim, Estimate


def estimate_of(row: Mapping, name: str, n: str = "pairs") -> Estimate:
    """The estimate in a row's columns `name`_mean, `name`_low and so on; column `n` counts its values."""
    parts = {part: row.get(f"{name}_{part}", math.nan) for part in PARTS}
    return Estimate(n=int(row[n]), **parts)


def verdict(found: Estimate, null: float, form: str) -> str:
    """Interval and n, and whether a difference may be claimed; `null` means that there is none."""
    if found.n < CLAIM_N:
        pairs = "1 pair of seeds" if found.n == 1 else f"{found.n} pairs of seeds"
        return f"in {pairs}; fewer than {CLAIM_N} pairs support no claim"
    interval = f"95\u00a0% interval {found.low:{form}} to {found.high:{form}}, n = {found.n} pairs of seeds"
    if Claim(found, null).holds:
        return interval
    which = "it" if found.low <= null <= found.high else "the bootstrap interval"
    return f"{interval}; {which} includes {null:g}, so no difference is claimed"


def variant(row: Mapping) -> str:
    """`grpo, arm base, decoupled objective`."""
    return f"{row['algorithm']}, arm {row['arm']}, {row['objective']} objective"


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, or `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def number(count: int, noun: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
