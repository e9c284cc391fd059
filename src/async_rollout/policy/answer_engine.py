"""The engine of policies that choose a whole answer at once and then spell it out.

The choice is made at a sample's first step and carries all of the log-probability; the
characters that follow are certain. Each step emits one character a sample, so samples
live as long as a language model's and weights change in their middle.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from async_rollout.policy.char_codec import STOP
from async_rollout.policy.interface import Recompute
from async_rollout.policy.noise import stream_keys, uniforms
from async_rollout.types import FinishReason, SampleId, SampleRequest, Trajectory

Choose = Callable[[SampleRequest, float], tuple[np.ndarray, float]]
"""From a request and a uniform number to response ids (L,), stop included, and their log-probability."""


@dataclass(slots=True)
class _Running:
    request: SampleRequest
    response: np.ndarray | None = None  # chosen in the first step
    logprob: float = 0.0
    versions: list[int] = field(default_factory=list)


class AnswerEngine:
    """Engine (see interface.py) over a function that chooses answers."""

    def __init__(self, choose: Choose, *, slots: int, seed: int, version: int) -> None:
        self.version = version
        self.slots = slots
        self._choose = choose
        self._seed = seed
        self._samples: list[_Running] = []

    @property
    def free_slots(self) -> int:
        """Slots that `submit` can still fill."""
        return self.slots - len(self._samples)

    def running(self) -> list[SampleId]:
        """Samples that hold a slot."""
        return [sample.request.id for sample in self._samples]

    def submit(self, requests: Iterable[SampleRequest]) -> None:
        """Give requests to free slots."""
        requests = list(requests)
        if len(requests) > self.free_slots:
            raise ValueError(f"{len(requests)} samples submitted to {self.free_slots} free slots")
        self._samples += map(_Running, requests)

    def cancel(self, groups: set[int]) -> list[Trajectory]:
        """Forget running samples of these groups; returns what they had, those without a token left out."""
        cancelled = [s for s in self._samples if s.request.id.group in groups]
        self._samples = [s for s in self._samples if s.request.id.group not in groups]
        return [_trajectory(sample, "cancelled") for sample in cancelled if sample.versions]

    def step(self) -> list[Trajectory]:
        """One more character for every running sample; returns the finished."""
        self._choose_new()
        going, finished = [], []
        for sample in self._samples:
            sample.versions.append(self.version)
            done = len(sample.versions) == min(len(sample.response), sample.request.max_new_tokens)
            (finished if done else going).append(sample)
        self._samples = going
        return [
            _trajectory(s, "stop" if s.response[len(s.versions) - 1] == STOP else "length") for s in finished
        ]

    def weights_changed(self, version: int, *, keep_cache: bool = False) -> Recompute:
        """The parameters now hold this version; there is no cache to keep or to recompute."""
        self.version = version
        return Recompute(sum(s.response is not None for s in self._samples), 0, 0.0)

    def _choose_new(self) -> None:
        """Answers for the samples that have none yet."""
        if new := [sample for sample in self._samples if sample.response is None]:
            keys = stream_keys(self._seed, [sample.request.id for sample in new])
            for sample, noise in zip(new, uniforms(keys, np.zeros(len(new))).tolist(), strict=True):
                sample.response, sample.logprob = self._choose(sample.request, noise)


def _trajectory(sample: _Running, reason: FinishReason) -> Trajectory:
    n = len(sample.versions)
    response = sample.response[:n]
    logprobs = np.zeros(n, dtype=np.float32)
    logprobs[0] = sample.logprob
    return Trajectory(
        id=sample.request.id,
        prompt_ids=sample.request.prompt_ids,
        response_ids=response,
        behavior_logprobs=logprobs,
        versions=np.array(sample.versions, dtype=np.int32),
        action_mask=np.ones(n, dtype=bool),
        finish_reason=reason,
    )
