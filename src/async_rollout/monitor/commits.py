"""What the monitor keeps of a commit, and of the last few commits."""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

RECENT = 40
_WINDOW = 10  # commits that "now" means


@dataclass(frozen=True, slots=True)
class Commit:
    """The part of a `MetricsRow` that is watched."""

    version: int
    seconds: float
    reward_mean: float
    correct: int
    incorrect: int
    trained_tokens: int
    trained_samples: int
    staleness_mean: float
    staleness_max: int
    length_mean: float
    kl: float
    entropy: float
    grad_norm: float
    ess_ratio: float
    step_sec: float
    wait_sec: float
    waiting_groups: int
    running_groups: int
    staleness: dict[str, int]
    dropped: dict[str, int]


def commit_of(row: dict[str, Any]) -> Commit | None:
    """The commit of a row; None if a number is missing or is none."""
    values = {name: row.get(name) for name in Commit.__slots__}
    counts = values["staleness"], values["dropped"] = row.get("staleness"), row.get("dropped", {})
    if not all(isinstance(c, dict) and all(map(is_number, c.values())) for c in counts):
        return None
    if not all(is_number(value) for name, value in values.items() if name not in ("staleness", "dropped")):
        return None
    return Commit(**values)


def is_number(value: Any) -> bool:
    """Whether a value from a file is a number that can be reckoned with."""
    return isinstance(value, int | float) and abs(value) < 1e30  # false for NaN


class Recent:
    """The last commits, and what they say about now."""

    __slots__ = ("commits",)

    def __init__(self) -> None:
        self.commits: deque[Commit] = deque(maxlen=RECENT)

    @property
    def last(self) -> Commit | None:
        """The newest commit."""
        return self.commits[-1] if self.commits else None

    @property
    def interval(self) -> float | None:
        """Usual seconds between two commits; None before the third."""
        times = [c.seconds for c in self.commits]
        gaps = [b - a for a, b in pairwise(times)]
        return median(gaps) if len(gaps) > 1 else None

    @property
    def pass_rate(self) -> float | None:
        """Share of judged samples that were correct."""
        window = self._window()
        judged = sum(c.correct + c.incorrect for c in window)
        return sum(c.correct for c in window) / judged if judged else None

    @property
    def speed(self) -> float | None:
        """Trained tokens a second."""
        window = self._window()
        if not window:
            return None
        first = window[0]
        seconds = window[-1].seconds - (first.seconds - first.step_sec - first.wait_sec)
        return sum(c.trained_tokens for c in window) / seconds if seconds > 0 else None

    @property
    def drop_rate(self) -> float:
        """Share of tokens that ended dropped, of those that ended trained or dropped."""
        dropped = sum(sum(c.dropped.values()) for c in self.commits)
        ended = dropped + sum(sum(c.staleness.values()) for c in self.commits)
        return dropped / ended if ended else 0.0

    def _window(self) -> list[Commit]:
        return list(self.commits)[-_WINDOW:]
