"""Rows of `results.jsonl`, `metrics.jsonl` and `evals.jsonl`, one frozen dataclass each.

Every field is plain data, so that a row is `json.dumps(asdict(row), allow_nan=False)`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One judged sample, trained or dropped."""

    group: int
    sample: int
    attempt: int
    task_id: str
    prompt: str  # as the model saw it
    response: str
    finish_reason: str
    tokens: int  # response tokens
    reward: float | None  # None if no try could judge it
    verdict: str
    extracted: str | None
    compared: str | None  # "inside" if a test had to be decided beside the program, else None
    turns: list[list[int]]  # [tokens that the model wrote, tokens that its environment wrote then]
    versions: list[list[int]]  # runs of [policy version, tokens], in order of sampling
    trained_at: int | None  # version of the trainer when the step that used it started
    staleness: int | None  # trained_at (or the version at which it was dropped) − oldest version
    dropped: str | None  # why it was not trained, else None


@dataclass(frozen=True, slots=True)
class MetricsRow:
    """One commit. Means are over action tokens unless the name says otherwise."""

    version: int  # after the commit
    seconds: float  # since all processes were ready
    groups: list[int]  # numbers of the groups trained
    reward_mean: float
    correct: int
    incorrect: int
    trained_tokens: int
    trained_samples: int
    mixed_version_samples: int  # trained samples with tokens of more than one version
    staleness_mean: float
    staleness_max: int
    staleness: dict[str, int]  # {age: trained tokens}
    length_mean: float
    loss: float
    kl: float
    entropy: float
    grad_norm: float
    grad_cosine: float | None  # between successive optimizer steps; None if not measured
    clip_fraction: float
    mask_fraction: float
    importance_weight_mean: float
    importance_weight_max: float
    ess_ratio: float
    saturations: int
    first_logratio_max: float  # max |log π_θ − log π_behav| before the first optimizer step
    zero_variance_groups: float  # share
    value_loss: float | None  # of the critic, mean over minibatches; None without one
    value_clip_fraction: float | None
    explained_variance: float | None  # of the returns by the values before; None: no critic, or equal returns
    critic_only: bool  # warm-up: the critic alone was trained
    optimizer_steps: int
    empty: bool  # nothing was trainable: same weights
    step_sec: float  # training and publication
    wait_sec: float  # trainer idle before this batch
    waiting_groups: int  # complete, not handed over, when the commit was seen
    running_groups: int
    dropped: dict[str, int]  # {reason: action tokens dropped since the last commit}


@dataclass(frozen=True, slots=True)
class EvalRow:
    """Held-out pass rates of one policy version."""

    version: int
    updates: int
    seconds: float  # when the version was committed, on the run's clock
    sampled: float
    greedy: float
    n: int  # tasks, one sample each
