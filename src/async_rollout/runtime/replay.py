"""Groups under way: what was submitted and is neither trained, dropped nor rejected.

A group is `running` until all its samples are judged, then `waiting`; it leaves through
`take` or `reject`, each exactly once. A sample that arrives for a group that is gone, or
twice, is not expected any more.
"""

from dataclasses import dataclass, field

from async_rollout.types import Group, Sample, SampleId


@dataclass(slots=True)
class _Running:
    task_id: str
    admitted_at: int
    expected: dict[int, int]  # sample → attempt
    samples: dict[int, Sample] = field(default_factory=dict)
    started_at: int | None = None  # None until it is known that a sample was started

    @property
    def oldest_bound(self) -> int:
        """No token of the group is older than this: its age, once it has started."""
        return self.admitted_at if self.started_at is None else self.started_at


class Replay:
    """Assembles samples into groups and keeps the complete ones until a trainer takes them."""

    def __init__(self) -> None:
        self._running: dict[int, _Running] = {}
        self._waiting: dict[int, Group] = {}
        self._oldest: dict[int, int] = {}  # of the waiting ones; the controller asks all the time

    def open(self, number: int, task_id: str, samples: int, version: int) -> None:
        """A group was submitted at this policy version."""
        self._running[number] = _Running(task_id, version, dict.fromkeys(range(samples), 0))

    def start(self, number: int, version: int) -> None:
        """A running group's first sample was started under this version; others begin no earlier."""
        group = self._running.get(number)
        if group is not None and group.started_at is None:
            group.started_at = version

    def unfinished(self, number: int) -> list[SampleId]:
        """Samples of a running group that have not come."""
        group = self._running[number]
        return [SampleId(number, i, n) for i, n in group.expected.items() if i not in group.samples]

    def retry(self, sample: SampleId) -> SampleId:
        """A sample that was lost is expected anew, as its next attempt."""
        self._running[sample.group].expected[sample.sample] = sample.attempt + 1
        return sample._replace(attempt=sample.attempt + 1)

    def renew(self, number: int, version: int, *, whole: bool) -> None:
        """Samples of a running group, or the `whole` of it, will start anew at this version or later."""
        group = self._running[number]
        group.admitted_at = version
        if group.started_at is not None:
            group.started_at = None if whole else min(group.started_at, version)

    def expects(self, sample: SampleId) -> bool:
        """True if this very attempt is still wanted."""
        group = self._running.get(sample.group)
        return (
            group is not None
            and group.expected.get(sample.sample) == sample.attempt
            and sample.sample not in group.samples
        )

    def add(self, sample: Sample) -> None:
        """A judged sample of a running group; the last one moves the group to the waiting ones."""
        key = sample.trajectory.id
        group = self._running[key.group]
        group.samples[key.sample] = sample
        if len(group.samples) == len(group.expected):
            del self._running[key.group]
            ordered = tuple(group.samples[i] for i in sorted(group.samples))
            self._waiting[key.group] = done = Group(key.group, group.task_id, ordered)
            self._oldest[key.group] = done.oldest_version

    def complete(self) -> list[tuple[int, int]]:
        """(oldest version, number) of every waiting group."""
        return [(oldest, number) for number, oldest in self._oldest.items()]

    def under_way(self) -> list[tuple[int, int]]:
        """(lower bound of its oldest version, number) of every running group."""
        return [(g.oldest_bound, n) for n, g in self._running.items()]

    def begun(self) -> list[tuple[int, int]]:
        """As `under_way`, but only of groups whose samples have started: they get older with every commit."""
        return [(g.started_at, n) for n, g in self._running.items() if g.started_at is not None]

    def take(self, numbers: list[int]) -> list[Group]:
        """Remove waiting groups, to be trained or dropped."""
        for number in numbers:
            del self._oldest[number]
        return [self._waiting.pop(number) for number in numbers]

    def reject(self, number: int) -> list[Sample]:
        """Remove a running group; returns its samples so far."""
        return list(self._running.pop(number).samples.values())

    @property
    def running(self) -> int:
        """Groups whose samples are not all judged."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Complete groups."""
        return len(self._waiting)
