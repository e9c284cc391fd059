"""`summary.json`: the one declared output of a cell; it exists only if the run is complete.

Rates lie in [0, 1], counts are not negative, no number is NaN or infinite: a summary that
breaks this cannot be built, and a file that breaks it is not read as done.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1

Rate = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


class Record(BaseModel):
    """Strict and frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class EvalPoint(Record):
    """Held-out pass rates of one policy version."""

    version: Count
    updates: Count
    seconds: Seconds
    sampled: Rate
    greedy: Rate
    n: Count


class Flow(Record):
    """What became of everything generated, in samples or in tokens.

    `generated` = `trained` + the sum of `dropped` + `abandoned`.
    """

    generated: Count
    trained: Count
    dropped: dict[str, Count]
    abandoned: Count


class StalenessHistogram(Record):
    """Tokens by age in policy versions: when trained, when dropped, and when the sample was finished.

    The rows of results.jsonl have the first two; when a sample was finished, only the run knew.
    """

    trained: dict[str, Count]
    generated: dict[str, Count]
    dropped: dict[str, Count]


class QueueTrace(Record):
    """Groups waiting and running over time, one entry a commit."""

    seconds: list[Seconds]
    waiting: list[Count]
    running: list[Count]


class EventTrace(Record):
    """Columns of the first events; `left_out` counts those beyond the cap."""

    seconds: list[Seconds]
    name: list[str]
    role: list[str]
    left_out: Count


class Summary(Record):
    """A finished cell. The same fields for every mode."""

    schema_version: Literal[1] = SCHEMA_VERSION
    config_hash: str
    experiment: str
    dataset: str
    mode: str
    algorithm: str
    arm: str
    k: Count | Literal["inf"]
    decoupled: Literal[0, 1]
    seed: Count
    status: Literal["done", "collapsed"]
    backend: str
    objective: str
    config: dict

    eval_pass_rate: list[EvalPoint]
    pass_rate_first: Rate  # training samples of the first 10 % of updates
    pass_rate_last: Rate
    reward_mean: float
    infrastructure_failures: Count

    policy_version: Count
    updates: Count
    empty_updates: Count
    critic_updates: Count  # at the start, which trained the critic alone
    minibatches: Count
    samples: Flow
    tokens: Flow
    groups: dict[str, Count]  # submitted, trained, dropped, rejected, abandoned
    mixed_version_samples: Count
    turns: Count  # of trained samples
    interrupted_turns: Count  # of those, with tokens of more than one version
    length_mean_trained: float
    length_mean_generated: float

    wall_clock_sec: Seconds
    setup_wall_clock_sec: Seconds
    evaluation_wall_clock_sec: Seconds
    lost_sec: Seconds
    attempts: Annotated[int, Field(ge=1)]
    trained_tokens_per_sec: float
    generated_tokens_per_sec: float
    updates_per_sec: float
    cpu_seconds: dict[str, Seconds]  # by role
    busy_fraction: dict[str, Rate]  # by role

    staleness_histogram: StalenessHistogram
    staleness_mean: float
    staleness_max: Count
    interruptions: Count
    resumed_samples: Count
    recomputed_tokens: Count
    recompute_sec: Seconds
    restarts: Count = 0  # rollout workers that were replaced
    redrawn_samples: Count = 0  # lost with a worker or late, and drawn again
    queue_depth_trace: QueueTrace
    event_counts: dict[str, Count]
    event_trace: EventTrace

    clip_fraction: Rate
    mask_fraction: Rate
    importance_weight_max: float
    ess_ratio: float
    kl: float
    entropy: float
    grad_norm: float
    grad_cosine: float | None  # None if not measured
    zero_variance_groups: Rate
    value_loss: float | None  # None without a critic
    explained_variance: float | None

    software: dict[str, str]
    machine: dict[str, str | int | float]
    sandbox: Literal["isolated", "filtered", "elsewhere"] | None = (
        None  # of programs; None: none, or not told
    )
