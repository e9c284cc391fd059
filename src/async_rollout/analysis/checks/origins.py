"""Cells that were not made alike: other software, another machine."""

from collections.abc import Callable, Iterable, Iterator

from async_rollout.analysis.checks.check import Check
from async_rollout.analysis.collect import Cells
from async_rollout.analysis.tally import tally
from async_rollout.records.summary import Summary


def origins(cells: Cells) -> Iterator[Check]:
    """What differs in software and machine. Another schema version is a broken summary, see `collect`."""
    done = [summary for _, summary in cells.done()]
    for text in _differences(done, lambda summary: summary.software):
        yield Check("warning", f"cells were made by different software: {text}")
    for text in _differences(done, lambda summary: summary.machine):
        yield Check("warning", f"cells ran on different machines, so their speeds do not compare: {text}")


def _differences(done: Iterable[Summary], part: Callable[[Summary], dict]) -> Iterator[str]:
    for key, values in tally(done, part).items():
        if len(values) > 1:
            yield f"{key} is " + ", ".join(f"{value} ({n} cells)" for value, n in values.items())
