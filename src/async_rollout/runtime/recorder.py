"""Writes a run's rows as things happen, and keeps the totals that its summary needs.

Every sample that was generated is counted once where it ends: trained, dropped with a
reason, or abandoned. Staleness is counted per action token at the moment of training.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from async_rollout.records.files import JsonlWriter, read_jsonl
from async_rollout.records.rows import EvalRow, MetricsRow, ResultRow
from async_rollout.runtime.checkpoint import RunState
from async_rollout.types import Group, Sample, Trajectory, UpdateMetrics


@dataclass(slots=True)
class Totals:
    """Running sums of one run."""

    submitted: int = 0
    groups: Counter = field(default_factory=Counter)  # trained, or why dropped
    samples: Counter = field(default_factory=Counter)  # generated, trained, or why dropped
    tokens: Counter = field(default_factory=Counter)
    ages: dict[str, Counter] = field(
        default_factory=lambda: {k: Counter() for k in ("trained", "generated", "dropped")}
    )
    mixed_version_samples: int = 0
    turns: int = 0  # of trained samples
    interrupted_turns: int = 0
    interruptions: int = 0
    resumed_samples: int = 0
    recomputed_tokens: int = 0
    recompute_sec: float = 0.0
    infrastructure_failures: int = 0
    restarts: int = 0  # rollout workers that were replaced
    redrawn_samples: int = 0  # lost with a worker or late, and drawn again


class Recorder:
    """One run's files: results.jsonl, metrics.jsonl, evals.jsonl; they go on from `before`, if given."""

    def __init__(self, out: Path, prompts: Mapping[str, str], before: RunState | None = None):
        self._prompts = prompts  # task id → prompt text as the model saw it
        self._results = JsonlWriter(out / "results.jsonl")
        self._metrics = JsonlWriter(out / "metrics.jsonl")
        self._evals = JsonlWriter(out / "evals.jsonl")
        self.totals = Totals()
        self.commits: list[MetricsRow] = []
        self.evaluations: list[EvalRow] = []
        self._dropped: Counter = Counter()  # tokens by reason, since the last commit
        self._seconds = 0.0  # on the run's clock when this attempt began
        self.pauses: list[tuple[float, float]] = []  # of this attempt: they are not on it
        self._stopped: float | None = None  # when the clock was, while it is
        if before is not None:
            self.totals, self._dropped = before.recorder
            self._seconds = before.seconds
            self.commits = [MetricsRow(**row) for row in read_jsonl(out / "metrics.jsonl")]
            self.evaluations = [EvalRow(**row) for row in read_jsonl(out / "evals.jsonl")]
        self.start()

    def start(self) -> None:
        """All parts are ready: the run's clock starts, or goes on."""
        self.ready = time.monotonic()
        self.started = self.ready - self._seconds  # moved back by what earlier attempts did

    @property
    def seconds(self) -> float:
        """On the run's clock."""
        now = time.monotonic() if self._stopped is None else self._stopped
        return now - self.started - sum(ended - begun for begun, ended in self.pauses)

    def stop_clock(self) -> None:
        """What happens from now on takes no time; no harm if the clock has been stopped."""
        if self._stopped is None:
            self._stopped = time.monotonic()

    def go_on(self) -> float:
        """The clock goes on; returns for how many seconds it was stopped."""
        if self._stopped is None:
            return 0.0
        begun, ended = self._stopped, time.monotonic()
        self.pauses.append((begun, ended))
        self._stopped = None
        return ended - begun

    def state(self, version: int, cpu_seconds: dict[str, float], work: Any) -> RunState:
        """For a checkpoint after the commit of `version`: every row until now is on disk."""
        writers = {"results.jsonl": self._results, "metrics.jsonl": self._metrics, "evals.jsonl": self._evals}
        return RunState(
            version=version,
            seconds=self.seconds,
            cpu_seconds=cpu_seconds,
            offsets={name: writer.sync() for name, writer in writers.items()},
            recorder=(self.totals, self._dropped),
            work=work,
        )

    def generated(self, trajectory: Trajectory, version: int) -> None:
        """A sample was finished while the clock showed `version`."""
        self._count("generated", [trajectory], version, "generated")

    def reloaded(self, resumed: int, tokens: int, seconds: float) -> None:
        """A rollout worker loaded new weights; it was an interruption if samples were running."""
        totals = self.totals
        totals.interruptions += resumed > 0
        totals.resumed_samples += resumed
        totals.recomputed_tokens += tokens
        totals.recompute_sec += seconds

    def late(self, sample: Sample, task_id: str, version: int, reason: str = "late") -> None:
        """A sample whose group was gone before it came, or was cancelled; it was never judged."""
        self._count(reason, [sample.trajectory], version, "dropped")
        self._results.write(self._row(sample, sample.trajectory.id.group, task_id, version, reason))

    def dropped(self, samples: Sequence[Sample], group: int, task_id: str, version: int, reason: str) -> None:
        """These samples of a group that ends untrained are written with the reason."""
        self.totals.groups[reason] += 1
        self._count(reason, [s.trajectory for s in samples], version, "dropped")
        self._results.write(*(self._row(s, group, task_id, version, reason) for s in samples))

    def committed(
        self,
        version: int,
        metrics: UpdateMetrics,
        groups: Sequence[Group],
        *,
        waiting: int,
        running: int,
        wait_sec: float,
        step_sec: float,
    ) -> MetricsRow:
        """A batch ended in the commit of `version`; returns the row that was written."""
        trained_at = version - 1
        samples = [(g, s) for g in groups for s in g.samples]
        self.totals.groups["trained"] += len(groups)
        trajectories = [s.trajectory for _, s in samples]
        self._count("trained", trajectories, trained_at, "trained")
        self.totals.turns += sum(len(t.turns) for t in trajectories)
        self.totals.interrupted_turns += sum(t.interrupted_turns for t in trajectories)
        self._results.write(*(self._row(s, g.number, g.task_id, trained_at, None) for g, s in samples))
        dropped, self._dropped = dict(self._dropped), Counter()
        seconds = self.seconds
        row = _metrics_row(version, seconds, metrics, groups, waiting, running, wait_sec, step_sec, dropped)
        self.totals.mixed_version_samples += row.mixed_version_samples
        self.commits.append(row)
        self._metrics.write(row)
        return row

    def evaluated(self, version: int, sampled: float, greedy: float, n: int) -> None:
        """Held-out pass rates of a version."""
        seconds = next((c.seconds for c in self.commits if c.version == version), 0.0)
        row = EvalRow(version, version, round(seconds, 6), sampled, greedy, n)
        self.evaluations.append(row)
        self._evals.write(row)

    def close(self) -> None:
        """Flush everything to disk."""
        for writer in (self._results, self._metrics, self._evals):
            writer.close()

    def _count(self, what: str, trajectories: Sequence[Trajectory], version: int, ages: str) -> None:
        if not trajectories:
            return
        versions = np.concatenate([t.versions[t.action_mask] for t in trajectories])
        self.totals.samples[what] += len(trajectories)
        self.totals.tokens[what] += len(versions)
        if ages == "dropped":
            self._dropped[what] += len(versions)
        for age, count in enumerate(np.bincount(version - versions).tolist()):
            if count:
                self.totals.ages[ages][age] += count

    def _row(self, sample: Sample, group: int, task_id: str, version: int, reason: str | None) -> ResultRow:
        trajectory, verdict = sample.trajectory, sample.verdict
        return ResultRow(
            group=group,
            sample=trajectory.id.sample,
            attempt=trajectory.id.attempt,
            task_id=task_id,
            prompt=self._prompts[task_id],
            response=sample.text,
            finish_reason=trajectory.finish_reason,
            tokens=len(trajectory.response_ids),
            reward=None if verdict.infrastructure else verdict.reward,
            verdict=verdict.verdict,
            extracted=verdict.extracted,
            compared=verdict.compared,
            turns=[[b.stop - b.start for b in turn] for turn in trajectory.turns],
            versions=_runs(trajectory.versions),
            trained_at=version if reason is None else None,
            staleness=version - trajectory.oldest_version,
            dropped=reason,
        )


def _metrics_row(
    version: int,
    seconds: float,
    metrics: UpdateMetrics,
    groups: Sequence[Group],
    waiting: int,
    running: int,
    wait_sec: float,
    step_sec: float,
    dropped: dict[str, int],
) -> MetricsRow:
    samples = [s for g in groups for s in g.samples]
    correct = sum(s.verdict.correct for s in samples)
    ages, critic = metrics.staleness, metrics.critic
    counted = sum(ages.values())
    return MetricsRow(
        version=version,
        seconds=round(seconds, 6),
        groups=[g.number for g in groups],
        reward_mean=metrics.reward_mean,
        correct=correct,
        incorrect=len(samples) - correct,
        trained_tokens=metrics.trained_tokens,
        trained_samples=metrics.trained_samples,
        mixed_version_samples=sum(s.trajectory.mixed_version for s in samples),
        staleness_mean=sum(a * n for a, n in ages.items()) / max(1, counted),
        staleness_max=max(ages, default=0),
        staleness={str(age): ages[age] for age in sorted(ages)},
        length_mean=sum(len(s.trajectory.response_ids) for s in samples) / max(1, len(samples)),
        loss=metrics.loss,
        kl=metrics.kl,
        entropy=metrics.entropy,
        grad_norm=metrics.grad_norm,
        grad_cosine=metrics.grad_cosine,
        clip_fraction=metrics.clip_fraction,
        mask_fraction=metrics.mask_fraction,
        importance_weight_mean=metrics.importance_weight_mean,
        importance_weight_max=metrics.importance_weight_max,
        ess_ratio=metrics.ess_ratio,
        saturations=metrics.saturations,
        first_logratio_max=metrics.first_logratio_max,
        zero_variance_groups=metrics.zero_variance_groups,
        value_loss=critic and critic.loss,
        value_clip_fraction=critic and critic.clip_fraction,
        explained_variance=critic and critic.explained_variance,
        critic_only=metrics.critic_only,
        optimizer_steps=metrics.optimizer_steps,
        empty=metrics.empty,
        step_sec=round(step_sec, 6),
        wait_sec=round(wait_sec, 6),
        waiting_groups=waiting,
        running_groups=running,
        dropped=dropped,
    )


def _runs(versions: np.ndarray) -> list[list[int]]:
    """Runs of equal versions as [version, length]."""
    if not len(versions):
        return []
    if versions[0] == versions[-1]:  # versions never go back: one run
        return [[int(versions[0]), len(versions)]]
    starts = [0, *(np.flatnonzero(versions[1:] != versions[:-1]) + 1).tolist()]
    ends = [*starts[1:], len(versions)]
    return [[int(versions[start]), end - start] for start, end in zip(starts, ends, strict=True)]
