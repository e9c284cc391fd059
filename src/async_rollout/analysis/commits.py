"""What the tables need of a cell's `metrics.jsonl`, as arrays: a sweep's files are read once each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from async_rollout.records.cells import read_metrics
from async_rollout.records.rows import MetricsRow


@dataclass(frozen=True, eq=False)
class Commits:
    """Arrays with one entry a commit, in order of version: (N,)."""

    correct: np.ndarray  # trained samples that were solved
    incorrect: np.ndarray
    step_sec: np.ndarray  # training and publication
    wait_sec: np.ndarray  # before it, while the trainer had no batch; in `sync`: generation

    @classmethod
    def of(cls, rows: list[MetricsRow]) -> Self:
        """The columns of `rows`. ValueError if one is not finite."""
        columns = {
            name: np.array([getattr(row, name) for row in rows], dtype=np.float64)
            for name in cls.__dataclass_fields__
        }
        for name, values in columns.items():
            if not np.isfinite(values).all():
                number = int(np.flatnonzero(~np.isfinite(values))[0]) + 1
                raise ValueError(f"metrics.jsonl:{number}: {name} is {values[number - 1]}")
        return cls(**columns)

    def __len__(self) -> int:
        return len(self.correct)

    def pass_rates(self, window: int) -> list[float]:
        """Correct ÷ judged of each `window` commits, the last one perhaps shorter; NaN if none was judged."""
        starts = np.arange(0, len(self), window)
        if not len(starts):
            return []
        correct = np.add.reduceat(self.correct, starts)
        judged = correct + np.add.reduceat(self.incorrect, starts)
        with np.errstate(invalid="ignore"):
            return (correct / judged).tolist()


def read_commits(cell: Path) -> Commits:
    """From a cell's directory. FileNotFoundError if it has no metrics, ValueError if they are damaged."""
    return Commits.of(read_metrics(cell))
