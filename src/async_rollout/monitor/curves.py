"""A cell's history in bounded memory: one point a commit, later the mean of 2, 4, 8, ... commits.

The x of a point is that of its last commit, its y the mean of its commits.
"""

from array import array

AXES = ("version", "seconds", "samples", "tokens")
MEASURES = (
    "pass_rate",
    "reward",
    "kl",
    "staleness",
    "ess",
    "speed",
    "entropy",
    "length",
    "grad_norm",
    "waiting",
    "running",
)
LIMIT = 400  # points


class Curves:
    """Columns of equal length."""

    __slots__ = ("_pending", "_sums", "columns", "epoch", "stride")

    def __init__(self) -> None:
        self.epoch = 0  # changes whenever points that were handed out are no longer true
        self._empty()

    def clear(self) -> None:
        """Forget everything: the history was rewritten."""
        self._empty()
        self.epoch += 1

    def _empty(self) -> None:
        self.columns = {name: array("d") for name in AXES} | {name: array("f") for name in MEASURES}
        self.stride = 1  # commits a point
        self._pending = 0
        self._sums = dict.fromkeys(MEASURES, 0.0)

    def add(self, axes: dict[str, float], measures: dict[str, float]) -> None:
        """One commit."""
        self._pending += 1
        for name in MEASURES:
            self._sums[name] += measures[name]
        if self._pending < self.stride:
            return
        for name in AXES:
            self.columns[name].append(axes[name])
        for name in MEASURES:
            self.columns[name].append(self._sums[name] / self._pending)
            self._sums[name] = 0.0
        self._pending = 0
        if len(self.columns["version"]) >= LIMIT:
            self._halve()

    def _halve(self) -> None:
        for name in AXES:
            self.columns[name] = self.columns[name][1::2]
        for name in MEASURES:
            column = self.columns[name]
            self.columns[name] = array(
                "f", ((a + b) / 2 for a, b in zip(column[::2], column[1::2], strict=True))
            )
        self.stride *= 2
        self.epoch += 1

    def after(self, version: float) -> dict[str, list[float]]:
        """The points beyond a version, six digits each."""
        versions = self.columns["version"]
        first = next((i for i in range(len(versions), 0, -1) if versions[i - 1] <= version), 0)
        return {
            name: [float(f"{v:.6g}") if name in MEASURES else v for v in column[first:]]
            for name, column in self.columns.items()
        }
