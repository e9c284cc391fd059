"""What travels between the parts: samples, verdicts, prompt groups, and what an update did.

These hold always: per-token arrays of one trajectory have one length; the stop token is
part of the response; its first token is an action; a token's version is that of the weights
whose logits it was sampled from, and along a response versions never go back. numpy only, so
that processes without torch can use them.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np

FinishReason = Literal["stop", "length", "cancelled"]


class SampleId(NamedTuple):
    """Names one draw: the group's number in the run, the sample in it, and which attempt."""

    group: int
    sample: int
    attempt: int = 0


class Plain:
    """Is pickled as a call with its fields: four times faster than a frozen dataclass by itself."""

    __slots__ = ()

    def __reduce__(self) -> tuple:
        return type(self), tuple(getattr(self, name) for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A task as it is put to a policy."""

    task_id: str
    ids: np.ndarray  # (P,) int32
    environment: str = ""  # whose observations follow a turn, see tasks/environment.py; "": nobody's


@dataclass(frozen=True, slots=True)
class SampleRequest(Plain):
    """One sample to draw. Its noise is a function of (seed, id, position) alone."""

    id: SampleId
    prompt_ids: np.ndarray  # (P,) int32
    max_new_tokens: int  # observations included
    environment: str = ""  # as in Prompt

    @classmethod
    def of(cls, id: SampleId, prompt: Prompt, max_new_tokens: int) -> Self:
        """A sample of this prompt."""
        return cls(id, prompt.ids, max_new_tokens, prompt.environment)


@dataclass(frozen=True, slots=True)
class Trajectory(Plain):
    """One finished sample, with what the sampler knew about each response token."""

    id: SampleId
    prompt_ids: np.ndarray  # (P,) int32
    response_ids: np.ndarray  # (L,) int32, L >= 1, ends with the stop token if finish_reason is "stop"
    behavior_logprobs: np.ndarray  # (L,) float32, log π_behav(token) at the sampling temperature; observed: 0
    versions: np.ndarray  # (L,) int32, policy version that sampled the token, or that it was shown to
    action_mask: np.ndarray  # (L,) bool, False for tokens that an environment wrote; the first is True
    finish_reason: FinishReason

    def __reduce__(self) -> tuple:
        # One piece of memory in place of five arrays: a third of the time, and every sample travels twice.
        arrays = (self.prompt_ids, self.response_ids, self.behavior_logprobs, self.versions, self.action_mask)
        memory = b"".join(
            array.astype(kind, copy=False).tobytes() for array, kind in zip(arrays, _KINDS, strict=True)
        )
        sizes = (len(self.prompt_ids), len(self.response_ids))
        return _trajectory, (*self.id, *sizes, bytearray(memory), self.finish_reason)

    @property
    def turns(self) -> list[tuple[slice, slice]]:
        """Place of each turn's actions, and of the observation after them (empty after the last)."""
        if self.action_mask.all():
            n = len(self.action_mask)
            return [(slice(0, n), slice(n, n))]
        edges = np.flatnonzero(np.diff(self.action_mask, prepend=False, append=False)).tolist()
        starts, ends = edges[::2], edges[1::2]
        following = [*starts[1:], len(self.action_mask)]
        return [(slice(a, b), slice(b, c)) for a, b, c in zip(starts, ends, following, strict=True)]

    @property
    def mixed_version(self) -> bool:
        """True if tokens are of more than one policy version."""
        return bool(self.versions[0] != self.versions[-1])  # they never go back

    @property
    def interrupted_turns(self) -> int:
        """Turns with actions of more than one policy version."""
        if not self.mixed_version:
            return 0
        return sum(len(set(self.versions[actions].tolist())) > 1 for actions, _ in self.turns)

    @property
    def oldest_version(self) -> int:
        """Version of the oldest action token, the first: what the staleness bound looks at."""
        return int(self.versions[0])


_KINDS = tuple(np.dtype(kind) for kind in (np.int32, np.int32, np.float32, np.int32, bool))


def _trajectory(
    group: int, sample: int, attempt: int, prompt: int, response: int, memory: bytearray, reason: FinishReason
) -> Trajectory:
    """A pickled trajectory: its arrays are views of the one piece of memory, and can be written."""
    arrays, start = [], 0
    for kind, length in zip(_KINDS, (prompt, response, response, response, response), strict=True):
        arrays.append(np.frombuffer(memory, kind, length, start))
        start += length * kind.itemsize
    return Trajectory(SampleId(group, sample, attempt), *arrays, reason)


@dataclass(frozen=True, slots=True)
class Verdict(Plain):
    """How an answer was judged. `infrastructure` marks a failure of ours: never a reward."""

    reward: float
    verdict: str  # "pass", "fail", or a reason that the judge names
    extracted: str | None = None  # the answer as the judge read it
    infrastructure: bool = False
    compared: str | None = None  # "inside": beside the program, which could have forged it

    @property
    def correct(self) -> bool:
        """True if the answer counts as solved."""
        return self.verdict == "pass"


@dataclass(frozen=True, slots=True)
class Sample(Plain):
    """A trajectory with its text and verdict."""

    trajectory: Trajectory
    text: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Group(Plain):
    """The G judged samples of one prompt: the unit of admission, hand-over and normalisation."""

    number: int  # position in the run's order of submission, from 0
    task_id: str
    samples: tuple[Sample, ...]

    @property
    def oldest_version(self) -> int:
        """Version of the oldest action token in the group."""
        return min(s.trajectory.oldest_version for s in self.samples)


@dataclass(frozen=True, slots=True)
class CriticMetrics:
    """What one update did to the critic. Means are over the action tokens in the loss."""

    loss: float  # mean over minibatches of all passes
    clip_fraction: float  # tokens whose value had moved so far that they had no gradient
    explained_variance: float | None  # of the returns, by the values before; at most 1; None: equal returns
    grad_norm: float  # before clipping, mean over optimizer steps
    optimizer_steps: int


@dataclass(frozen=True, slots=True)
class UpdateMetrics:
    """Plain numbers; all finite. With no token in the loss every mean is 0.

    An `empty` update still measures: its loss and gradient are 0, its KL and entropy are true.
    """

    loss: float  # mean over minibatches
    kl: float  # estimate against the configured reference; against behavior when kl.coef is 0
    entropy: float  # nats
    grad_norm: float  # before clipping, mean over optimizer steps
    grad_cosine: float | None  # to the step before, mean over optimizer steps; None if not measured
    clip_fraction: float
    mask_fraction: float
    importance_weight_mean: float  # before its cap
    importance_weight_max: float
    ess_ratio: float  # effective sample size of the weights ÷ tokens
    saturations: int  # tokens with a log-ratio beyond ±20
    zero_variance_groups: float  # share of normalisation sets without signal: all advantages 0
    reward_mean: float  # of samples, as judged
    trained_tokens: int  # action tokens in the loss
    trained_samples: int  # samples with such a token
    first_logratio_max: float  # max |log π_θ − log π_behav| before the first optimizer step
    staleness: dict[int, int]  # {age: trained tokens}, age = the step's version − token's version
    optimizer_steps: int
    empty: bool  # nothing was trainable: same weights
    critic: CriticMetrics | None = None  # None without a critic, or without a token for it
    critic_only: bool = False  # warm-up: the critic alone was trained
