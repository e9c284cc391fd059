"""Environments, spoken to in ids: what follows a response whose turn has just ended."""

from collections.abc import Callable

import numpy as np

from async_rollout.policy.interface import Codec
from async_rollout.tasks.environment import ENVIRONMENTS

Observe = Callable[[str, np.ndarray], np.ndarray | None]
"""From an environment's name and the response ids so far (L,) to observation ids (n,), n >= 1, or None."""


class Turns:
    """Observes for every environment there is; only a token that ends a turn has the text read."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._ends: dict[tuple[str, int], bool] = {}  # whether a token holds the turn's end

    def __call__(self, environment: str, response_ids: np.ndarray) -> np.ndarray | None:
        """What the environment writes after this response, if anything."""
        if not self._may_end(environment, int(response_ids[-1])):
            return None
        text = ENVIRONMENTS[environment].observe(self._codec.decode(response_ids.tolist()))
        return self._codec.encode_observation(text) if text else None

    def _may_end(self, environment: str, token: int) -> bool:
        key = environment, token
        if key not in self._ends:
            self._ends[key] = ENVIRONMENTS[environment].turn_end in self._codec.decode([token])
        return self._ends[key]
