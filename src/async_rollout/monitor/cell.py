"""One watched cell: follows its files and keeps what they amount to, in bounded memory."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from async_rollout.monitor.axes import axes_of_config, axes_of_name, number_of
from async_rollout.monitor.commits import Recent, commit_of, is_number
from async_rollout.monitor.curves import Curves
from async_rollout.monitor.files import last_change, look_up, read_json
from async_rollout.monitor.follow import Follower
from async_rollout.monitor.places import Place
from async_rollout.records.cells import METRICS_FILE, SUMMARY_FILE, SummaryError, read_summary
from async_rollout.records.expected import ExpectedCell
from async_rollout.records.rows import EvalRow
from async_rollout.records.states import STATES, STATES_FILE, StateRow

EVALS_FILE = "evals.jsonl"
_SIGNS = (METRICS_FILE, EVALS_FILE, STATES_FILE, "results.jsonl", "resources.csv", "stdout.log")
_SETUP_PATIENCE_SEC = 900.0


@dataclass(frozen=True, slots=True)
class Ending:
    """What is kept of a sound summary; the cell's page reads the rest again."""

    status: str
    policy_version: int
    updates: int
    pass_rate_last: float
    staleness_mean: float
    staleness_max: int
    trained_tokens_per_sec: float
    attempts: int
    infrastructure_failures: int
    drop_rate: float


class WatchedCell:
    """What is known of a cell so far."""

    def __init__(self, place: Place):
        self.place = place
        directory = place.directory
        self._metrics = Follower(directory / METRICS_FILE, self._on_commit, self._forget_commits)
        self._evals = Follower(directory / EVALS_FILE, self._on_eval, self._forget_evals)
        self._states = Follower(directory / STATES_FILE, self._on_state, self._forget_states)
        self._seen: dict[str, tuple] = {}
        self.axes: ExpectedCell = place.expected or axes_of_name(place)
        self.setup_patience = _SETUP_PATIENCE_SEC
        self.ending: Ending | None = None
        self.summary_error = ""
        self.last_sign = 0.0  # when any of its files changed, seconds since 1970
        self.curves = Curves()
        self._has_history = False
        self.damaged_rows = 0
        self._forget_commits()
        self._forget_evals()
        self._forget_states()

    def look(self) -> bool:
        """Read what is new; True if something was.

        The history of a cell that was finished before it was first looked at is left for `want_history`.
        """
        changed = [self._look_at_config(), self._look_at_summary(), self._states.poll(), self._evals.poll()]
        if self.ending is None or self._has_history:
            self._has_history = True
            changed.append(self._metrics.poll())
        if self.ending is None:
            self.last_sign = last_change(self.place.directory, *_SIGNS)
        elif any(changed):
            self.last_sign = last_change(self.place.directory, SUMMARY_FILE, *_SIGNS[:3])
        return any(changed)

    def want_history(self) -> None:
        """Read the commits, if that was not done yet; later looks keep them up to date."""
        if not self._has_history:
            self._has_history = True
            self._metrics.poll()

    @property
    def last_commit_time(self) -> float:
        """When metrics.jsonl last changed, seconds since 1970."""
        return self._metrics.mtime

    @property
    def last_eval_time(self) -> float:
        """When evals.jsonl last changed, seconds since 1970."""
        return self._evals.mtime

    @property
    def damaged(self) -> int:
        """Complete lines of its followed files that are no rows."""
        return self.damaged_rows + sum(f.damaged for f in (self._metrics, self._evals, self._states))

    def _look_at_config(self) -> bool:
        path = self.place.directory / "config.json"
        if not self._changed(path):
            return False
        config = read_json(path)
        if isinstance(config, dict):
            self.axes = axes_of_config(self.place, config) or self.axes
            self.setup_patience = number_of(config, "supervision", "setup_timeout_sec") or _SETUP_PATIENCE_SEC
        return True

    def _look_at_summary(self) -> bool:
        path = self.place.directory / SUMMARY_FILE
        if not self._changed(path):
            return False
        self.ending, self.summary_error = None, ""
        if self._seen[path.name]:
            try:
                summary = read_summary(path)
            except (OSError, SummaryError) as error:
                self.summary_error = str(error).removeprefix(f"{path}: ")
            else:
                self.ending = Ending(
                    **{f: getattr(summary, f) for f in Ending.__slots__ if f != "drop_rate"},
                    drop_rate=sum(summary.tokens.dropped.values()) / max(1, summary.tokens.generated),
                )
        return True

    def _changed(self, path: Path) -> bool:
        """Whether a file is another than at the last look."""
        found = look_up(path)
        now = (found.st_ino, found.st_size, found.st_mtime_ns) if found else ()
        before, self._seen[path.name] = self._seen.get(path.name, ()), now
        return now != before

    def _on_commit(self, row: dict) -> None:
        commit = commit_of(row)
        if commit is None:
            self.damaged_rows += 1
            return
        before = self.recent.last.seconds if self.recent.last else 0.0
        self.tokens += commit.trained_tokens
        self.samples += commit.trained_samples
        self.staleness.update({str(a): int(n) for a, n in commit.staleness.items()})
        self.dropped.update({str(r): int(n) for r, n in commit.dropped.items()})
        self.oldest = max(self.oldest, commit.staleness_max)
        self.recent.commits.append(commit)
        judged = commit.correct + commit.incorrect
        time = commit.seconds - before
        passed = commit.correct / judged if judged else 0.0
        self.curves.add(
            {
                "version": commit.version,
                "seconds": commit.seconds,
                "samples": self.samples,
                "tokens": self.tokens,
            },
            {
                "pass_rate": passed,
                "reward": commit.reward_mean,
                "kl": commit.kl,
                "staleness": commit.staleness_mean,
                "ess": commit.ess_ratio,
                "speed": commit.trained_tokens / time if time > 0 else 0.0,
                "entropy": commit.entropy,
                "length": commit.length_mean,
                "grad_norm": commit.grad_norm,
                "waiting": commit.waiting_groups,
                "running": commit.running_groups,
            },
        )

    def _forget_commits(self) -> None:
        self.curves.clear()
        self.recent = Recent()
        self.tokens = self.samples = self.oldest = self.damaged_rows = 0
        self.staleness: Counter = Counter()
        self.dropped: Counter = Counter()

    def _on_eval(self, row: dict) -> None:
        if row.keys() != set(EvalRow.__slots__) or not all(map(is_number, row.values())):
            self.damaged_rows += 1
            return
        self.evals.append(EvalRow(**row))

    def _forget_evals(self) -> None:
        self.evals: list[EvalRow] = []

    def _on_state(self, row: dict) -> None:
        if row.keys() != set(StateRow.__slots__) or not _is_state(row):
            self.damaged_rows += 1
            return
        self.states.append(StateRow(**row))

    def _forget_states(self) -> None:
        self.states: list[StateRow] = []


def _is_state(row: dict[str, Any]) -> bool:
    words = all(isinstance(row[name], str) for name in ("state", "host", "reason", "detail"))
    return words and row["state"] in STATES and all(is_number(row[n]) for n in ("time", "attempt", "pid"))
