"""The one interface between policies and everything else.

A process builds its own policy (`build_policy` in registry.py) on its own device. Weights
are changed in place through `parameters()`; whoever changes them tells the engine with
`weights_changed`, so that a token's version is always that of the weights that sampled it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from async_rollout.types import SampleId, SampleRequest, Trajectory


@dataclass(frozen=True, slots=True)
class ScoringBatch:
    """Rows to score: prompts padded on the left, responses on the right, one width each."""

    prompt_ids: np.ndarray  # (n, P) int64
    prompt_mask: np.ndarray  # (n, P) bool, False on padding
    response_ids: np.ndarray  # (n, L) int64
    response_mask: np.ndarray  # (n, L) bool, False on padding


@dataclass(frozen=True, slots=True)
class Scores:
    """Per response token, float32, with gradient unless under no_grad; padding holds 0."""

    logprobs: torch.Tensor  # (n, L) log softmax(logits / temperature) of the token
    entropy: torch.Tensor  # (n, L) nats, detached


@dataclass(frozen=True, slots=True)
class Recompute:
    """What an interruption cost: samples that went on, and prefix tokens computed again."""

    resumed_samples: int
    tokens: int
    seconds: float


class Codec(Protocol):
    """Text to ids and back; needs no weights, so the controller can have one."""

    stop_ids: frozenset[int]
    pad_id: int

    def render(self, system: str, user: str) -> str:
        """The exact text of a prompt; an empty `system` is left out."""

    def encode(self, prompt: str) -> np.ndarray:
        """Ids (P,) int32 of a text from `render`, special tokens included as the model wants them."""

    def encode_observation(self, text: str) -> np.ndarray:
        """Ids (n,) int32 of what an environment writes into a response; no special tokens."""

    def decode(self, response_ids: Sequence[int]) -> str:
        """Text of a response without stop and padding tokens."""


class Engine(Protocol):
    """Decodes many samples at once; a finished sample's slot is free for the next."""

    @property
    def slots(self) -> int:
        """Samples that can be decoded at once."""

    @property
    def free_slots(self) -> int:
        """Slots that `submit` can still fill."""

    def submit(self, requests: Iterable[SampleRequest]) -> None:
        """Give requests to free slots. Raises ValueError if there are too few slots."""

    def cancel(self, groups: set[int]) -> list[Trajectory]:
        """Forget running samples of these groups; returns what they had, those without a token left out."""

    def step(self) -> list[Trajectory]:
        """Sample one token for every running sample (prefilling new ones); returns the finished."""

    def weights_changed(self, version: int, *, keep_cache: bool = False) -> Recompute:
        """The parameters now hold this version: forget caches, recompute running prefixes.

        With `keep_cache` go on with what the old weights computed, as some systems do: tokens are
        then sampled from no policy's distribution, though their log-probabilities are true to it.
        """

    def running(self) -> list[SampleId]:
        """Samples that hold a slot, in no promised order."""


class ValueModel(Protocol):
    """Estimates what a response will be worth, token by token; starts from a policy's backbone."""

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """Trainable parameters by name, always in the same order."""

    def values(self, batch: ScoringBatch) -> torch.Tensor:
        """(n, L + 1) float32: V_t at the position that predicts response token t, with gradient.

        Column L of a row with L tokens is the value of its end. What lies beyond has no meaning.
        """

    def state_dict(self) -> dict[str, torch.Tensor]:
        """All weights, frozen ones too."""

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Take over all weights."""


class Policy(Protocol):
    """One copy of a policy in one process."""

    codec: Codec

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """Trainable parameters by name, tied ones once, always in the same order."""

    def score(self, batch: ScoringBatch, temperature: float) -> Scores:
        """Log-probabilities of the responses under the current weights."""

    def value_model(self, *, freeze_attention: bool) -> ValueModel:
        """A new one, from a copy of this policy as it is. Raises ValueError if it has no backbone."""

    def engine(self, *, slots: int, seed: int, version: int, greedy: bool = False) -> Engine:
        """A fresh decoding engine over this policy's weights, now at this version."""

    def save(self, directory: Path) -> None:
        """Write the policy so that `model.id: DIRECTORY` loads it again."""
