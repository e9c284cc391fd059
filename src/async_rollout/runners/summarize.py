"""A finished run's summary, from what its recorder counted and its processes traced."""

from collections import Counter

from async_rollout.config.cells import config_hash
from async_rollout.config.run import RunConfig
from async_rollout.records.events import busy_fractions
from async_rollout.records.rows import MetricsRow
from async_rollout.records.summary import EvalPoint, EventTrace, Flow, QueueTrace, StalenessHistogram, Summary
from async_rollout.runners import provenance
from async_rollout.runners.attempts import Attempt
from async_rollout.runners.outcome import Outcome
from async_rollout.runtime.recorder import Recorder

IDLE = frozenset({"wait for batch", "evaluate", "snapshot", "checkpoint"})
_EVENTS_KEPT = 1000


def summarize(
    config: RunConfig,
    recorder: Recorder,
    outcome: Outcome,
    events: list[dict],
    attempt: Attempt,
    *,
    programs: bool,
) -> Summary:
    """The summary; `programs` if some answers are. Raises pydantic's ValidationError for what cannot be."""
    totals, commits = recorder.totals, recorder.commits
    wall = commits[-1].seconds  # what follows the last commit, such as its snapshot, is no part of it
    share = max(1, round(0.1 * len(commits)))
    samples, tokens = _flow(totals.samples), _flow(totals.tokens)
    histogram = {name: {str(a): n for a, n in sorted(c.items())} for name, c in totals.ages.items()}
    ages = totals.ages["trained"]
    return Summary(
        config_hash=config_hash(config),
        **config.model_dump(
            include={"experiment", "dataset", "mode", "algorithm", "arm", "k", "decoupled", "seed"}
        ),
        status="collapsed" if outcome.collapsed else "done",
        backend=config.model.backend,
        objective=config.objective.name,
        config=config.model_dump(mode="json"),
        eval_pass_rate=[
            EvalPoint(
                version=r.version,
                updates=r.updates,
                seconds=r.seconds,
                sampled=r.sampled,
                greedy=r.greedy,
                n=r.n,
            )
            for r in recorder.evaluations
        ],
        pass_rate_first=_pass_rate(commits[:share]),
        pass_rate_last=_pass_rate(commits[-share:]),
        reward_mean=_mean(commits, "reward_mean"),
        infrastructure_failures=totals.infrastructure_failures,
        policy_version=outcome.policy_version,
        updates=len(commits),
        empty_updates=sum(c.empty for c in commits),
        critic_updates=sum(c.critic_only for c in commits),
        minibatches=config.batch.minibatches,
        samples=samples,
        tokens=tokens,
        groups={"submitted": totals.submitted, **totals.groups},
        mixed_version_samples=totals.mixed_version_samples,
        turns=totals.turns,
        interrupted_turns=totals.interrupted_turns,
        length_mean_trained=tokens.trained / max(1, samples.trained),
        length_mean_generated=tokens.generated / max(1, samples.generated),
        wall_clock_sec=wall,
        setup_wall_clock_sec=recorder.ready - outcome.created,
        evaluation_wall_clock_sec=sum(e - b for b, e in outcome.pauses) + outcome.evaluated - outcome.ended,
        lost_sec=attempt.lost_sec,
        attempts=attempt.number,
        trained_tokens_per_sec=tokens.trained / wall,
        generated_tokens_per_sec=tokens.generated / wall,
        updates_per_sec=len(commits) / wall,
        cpu_seconds=outcome.cpu_seconds,
        busy_fraction=busy_fractions(events, recorder.ready, outcome.ended, IDLE, outcome.pauses),
        staleness_histogram=StalenessHistogram(**histogram),
        staleness_mean=sum(a * n for a, n in ages.items()) / max(1, sum(ages.values())),
        staleness_max=max(ages, default=0),
        interruptions=totals.interruptions,
        resumed_samples=totals.resumed_samples,
        recomputed_tokens=totals.recomputed_tokens,
        recompute_sec=totals.recompute_sec,
        restarts=totals.restarts,
        redrawn_samples=totals.redrawn_samples,
        queue_depth_trace=QueueTrace(
            seconds=[c.seconds for c in commits],
            waiting=[c.waiting_groups for c in commits],
            running=[c.running_groups for c in commits],
        ),
        event_counts=dict(sorted(Counter(e["name"] for e in events).items())),
        event_trace=_event_trace(events, outcome.started),
        clip_fraction=_mean(commits, "clip_fraction"),
        mask_fraction=_mean(commits, "mask_fraction"),
        importance_weight_max=max(c.importance_weight_max for c in commits),
        ess_ratio=_mean(commits, "ess_ratio"),
        kl=_mean(commits, "kl"),
        entropy=_mean(commits, "entropy"),
        grad_norm=_mean(commits, "grad_norm"),
        grad_cosine=_known_mean([c.grad_cosine for c in commits]),
        zero_variance_groups=_mean(commits, "zero_variance_groups"),
        value_loss=_known_mean([c.value_loss for c in commits]),
        explained_variance=_known_mean([c.explained_variance for c in commits]),
        software=provenance.software(),
        machine=provenance.machine(),
        sandbox=provenance.sandbox_level(config.reward) if programs else None,
    )


def _flow(counts: Counter) -> Flow:
    dropped = {name: n for name, n in counts.items() if name not in ("generated", "trained")}
    left = counts["generated"] - counts["trained"] - sum(dropped.values())
    return Flow(generated=counts["generated"], trained=counts["trained"], dropped=dropped, abandoned=left)


def _pass_rate(rows: list[MetricsRow]) -> float:
    correct = sum(r.correct for r in rows)
    return correct / (correct + sum(r.incorrect for r in rows))


def _known_mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _mean(rows: list[MetricsRow], field: str) -> float:
    return sum(getattr(r, field) for r in rows) / len(rows)


def _event_trace(events: list[dict], origin: float) -> EventTrace:
    kept = events[:_EVENTS_KEPT]
    return EventTrace(
        seconds=[round(max(0.0, e["start"] - origin), 4) for e in kept],
        name=[e["name"] for e in kept],
        role=[e["role"] for e in kept],
        left_out=len(events) - len(kept),
    )
