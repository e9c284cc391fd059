"""How a run is doing: a line every few seconds for people, its state for programs."""

import sys
import time
from pathlib import Path

from async_rollout.records.rows import MetricsRow
from async_rollout.records.states import Reason, State, StateLog


class Progress:
    """Prints to stderr (the terminal, also under Snakemake) and to the cell's stdout.log.

    The state goes to the cell's states.jsonl.
    """

    def __init__(self, name: str, updates: int, every_sec: float, out: Path, attempt: int):
        self._states = StateLog(out, attempt)
        self._name = name
        self._updates = updates
        self._every = every_sec
        self._log = (out / "stdout.log").open("a", encoding="utf-8")
        self._last = 0.0  # when something was printed
        self._moved = 0.0  # when there was a commit
        self._recent: list[MetricsRow] = []

    def enter(self, state: State, reason: Reason = "", detail: str = "") -> None:
        """The run is in another state now; `reason` and `detail` say why it failed."""
        self._states.enter(state, reason, detail)

    def commit(self, row: MetricsRow) -> None:
        """A commit: prints if a heartbeat is due, or at the first and the last."""
        self._recent = [*self._recent[-9:], row]
        self._moved = time.monotonic()
        due = self._moved - self._last >= self._every
        if due or row.version in (1, self._updates):
            self.say(self._line(row))

    def say(self, text: str) -> None:
        """Print a line now."""
        self._last = time.monotonic()
        line = f"[{self._name}] {text}"
        for stream in (sys.stderr, self._log):
            print(line, file=stream, flush=True)

    def idle(self, text: str) -> None:
        """Print if for a heartbeat nothing was printed and nothing was committed."""
        if time.monotonic() - max(self._last, self._moved) >= self._every:
            self.say(text)

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def _line(self, row: MetricsRow) -> str:
        judged = sum(r.correct + r.incorrect for r in self._recent)
        rate = sum(r.correct for r in self._recent) / max(1, judged)
        tokens = sum(r.trained_tokens for r in self._recent)
        before = self._recent[0].seconds - self._recent[0].step_sec - self._recent[0].wait_sec
        speed = tokens / max(1e-9, row.seconds - before)
        left = row.seconds / row.version * (self._updates - row.version)
        return (
            f"version {row.version}/{self._updates}  pass {rate:.2f}  {speed:,.0f} tok/s  "
            f"staleness {row.staleness_mean:.2f} (max {row.staleness_max})  "
            f"queue {row.waiting_groups}+{row.running_groups}  {row.seconds:.0f} s, {left:.0f} s left"
        )
