"""One id a character, for the policies without a tokenizer. Imports no torch."""

from collections.abc import Sequence

import numpy as np

from async_rollout.tasks.prompts import plain

PAD, STOP = 0, 1
_FIRST = 2  # id of the character with code point 0


class CharCodec:
    """Codec (see interface.py) whose ids are code points, shifted past padding and stop."""

    stop_ids = frozenset({STOP})
    pad_id = PAD

    def render(self, system: str, user: str) -> str:
        """Both as one text."""
        return plain(system, user)

    def encode(self, prompt: str) -> np.ndarray:
        """Ids (P,) int32 of the characters."""
        return np.array([ord(c) + _FIRST for c in prompt], dtype=np.int32)

    def encode_observation(self, text: str) -> np.ndarray:
        """Ids (n,) int32 of the characters."""
        return self.encode(text)

    def decode(self, response_ids: Sequence[int]) -> str:
        """Characters of a response without stop and padding."""
        return "".join(chr(int(i) - _FIRST) for i in response_ids if i >= _FIRST)

    def encode_response(self, text: str) -> np.ndarray:
        """Ids (L,) int32 of a whole response: its characters and the stop id."""
        return np.append(self.encode(text), np.int32(STOP))
