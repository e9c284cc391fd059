"""Which rollout worker draws which sample, and since when.

A sample is here from the moment that it is sent until the worker says that it is finished or
cancelled, or until nobody waits for it any more.
"""

import time
from collections.abc import Container, Iterable
from typing import NamedTuple

from async_rollout.types import SampleId


class Overdue(NamedTuple):
    """A sample that takes too long."""

    role: str  # of the worker that has it
    sample: SampleId
    silent: bool  # the worker has said nothing since it was given the sample


class Assignments:
    """Samples by worker, in the order in which they were given."""

    def __init__(self, roles: Iterable[str]):
        self._given: dict[str, dict[SampleId, float]] = {role: {} for role in roles}
        self._heard = dict.fromkeys(self._given, 0.0)

    def give(self, role: str, samples: Iterable[SampleId]) -> None:
        """The worker is to draw these."""
        self._given[role].update(dict.fromkeys(samples, time.monotonic()))

    def load(self, role: str) -> int:
        """Samples that the worker has."""
        return len(self._given[role])

    def heard(self, role: str, gone: Iterable[SampleId] = ()) -> None:
        """The worker has spoken, and has these samples no longer."""
        self._heard[role] = time.monotonic()
        for sample in gone:
            self._given[role].pop(sample, None)

    def withdraw(self, groups: Container[int]) -> list[SampleId]:
        """Nobody waits for these groups' samples any more: what was given of them."""
        withdrawn = []
        for given in self._given.values():
            taken = [sample for sample in given if sample.group in groups]
            withdrawn += taken
            for sample in taken:
                del given[sample]
        return withdrawn

    def lose(self, role: str) -> list[SampleId]:
        """The worker is gone: what it had."""
        given, self._given[role] = list(self._given[role]), {}
        return given

    def pause(self, seconds: float) -> None:
        """The run stood still for so long: that is no delay of anybody's."""
        self._heard = {role: heard + seconds for role, heard in self._heard.items()}
        for given in self._given.values():
            for sample in given:
                given[sample] += seconds

    def overdue(self, seconds: float) -> list[Overdue]:
        """Samples given longer ago than that."""
        limit = time.monotonic() - seconds
        found = []
        for role, given in self._given.items():
            for sample, since in given.items():
                if since > limit:  # so are all that follow
                    break
                found.append(Overdue(role, sample, self._heard[role] < since))
        return found
