"""What answers a model in the middle of its response, by task type.

An environment is a pure function of the response so far, so a sample's observations depend
neither on worker nor slot, nor on when weights change. What it writes is no action: it is
never trained, and the model never gets the chance to write it itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

from async_rollout.tasks import calculator


@dataclass(frozen=True, slots=True)
class Environment:
    """Consulted whenever the model writes a token that holds `turn_end`."""

    turn_end: str  # one character
    observe: Callable[[str], str | None]  # from the response so far to what follows it, None: nothing


ENVIRONMENTS = {"calculator": Environment(calculator.CALL_END, calculator.observe)}  # by task type
