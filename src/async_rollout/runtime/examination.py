"""One policy version's held-out evaluation: its answers, their verdicts, and the pass rates."""

from collections.abc import Sequence

from async_rollout.runtime.recorder import Recorder
from async_rollout.tasks.task import Task
from async_rollout.types import Verdict

Key = tuple[int, str, int]
"""(policy version, "sampled" or "greedy", the task's place)."""


class UnjudgedEvaluation(Exception):
    """An evaluation answer could not be judged: its pass rate would be a guess."""


class Examination:
    """A sampled and a greedy answer to each task."""

    def __init__(self, version: int, tasks: Sequence[Task], sampled: Sequence[str], greedy: Sequence[str]):
        self._version = version
        self._tasks = len(tasks)
        self.answers: list[tuple[Key, str, str]] = [  # (key, task id, text)
            ((version, kind, i), task.task_id, texts[i])
            for kind, texts in (("sampled", sampled), ("greedy", greedy))
            for i, task in enumerate(tasks)
        ]
        self.open = {key for key, _, _ in self.answers}
        self._verdicts: dict[Key, Verdict] = {}

    def judged(self, key: Key, verdict: Verdict) -> None:
        """The verdict on one of the open answers."""
        self.open.remove(key)
        self._verdicts[key] = verdict

    def record(self, recorder: Recorder) -> None:
        """Write the version's row. Raises UnjudgedEvaluation if an answer could not be judged."""
        recorder.evaluated(self._version, self._rate("sampled"), self._rate("greedy"), self._tasks)

    def _rate(self, kind: str) -> float:
        verdicts = [v for (_, k, _), v in self._verdicts.items() if k == kind]
        if failed := [v for v in verdicts if v.infrastructure]:
            raise UnjudgedEvaluation(
                f"{len(failed)} of {len(verdicts)} evaluation answers could not be judged"
            )
        return sum(v.correct for v in verdicts) / len(verdicts)
