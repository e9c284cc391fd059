"""What a runner hands back for the summary."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished run. Moments are time.monotonic()."""

    policy_version: int
    collapsed: bool  # ended early, see config/collapse.py
    created: float  # the runner began to build its parts
    started: float  # all parts were ready
    ended: float  # the last commit was visible
    evaluated: float  # the last evaluation was judged
    cpu_seconds: dict[str, float]  # by role, from `started` to `ended`
    pauses: tuple[tuple[float, float], ...]  # between `started` and `ended`, when time was not the run's
