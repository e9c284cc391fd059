"""What the embedded model is shown before it learns by itself."""

from typing import NamedTuple


class Demonstration(NamedTuple):
    """A prompt and what is written after it. Between two turns stands what the environment observes."""

    prompt: str
    turns: tuple[str, ...]
