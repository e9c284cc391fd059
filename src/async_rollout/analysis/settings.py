"""What the cells have in common and in what they differ: configuration, software, machine."""

from collections.abc import Iterable

from async_rollout.analysis.collect import AXES
from async_rollout.analysis.tally import tally
from async_rollout.records.summary import Summary


def flat(config: dict, prefix: str = "") -> dict[str, object]:
    """Dotted keys to values; lists stay whole."""
    found: dict[str, object] = {}
    for key, value in config.items():
        if isinstance(value, dict) and value:
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def settings(done: Iterable[Summary]) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
    """Keys with one value in all cells; and those with several, each with its number of cells.

    The axes of the sweep are left out: the tables show them.
    """
    values = tally(done, lambda summary: flat(summary.config))
    values = {key: found for key, found in values.items() if key not in AXES}
    shared = {key: next(iter(found)) for key, found in values.items() if len(found) == 1}
    return shared, {key: found for key, found in values.items() if len(found) > 1}


def environment(done: list[Summary]) -> dict[str, dict[str, int]]:
    """Software and machine of the cells: values with their numbers of cells."""
    software = tally(done, lambda summary: summary.software)
    return software | {f"machine: {k}": v for k, v in tally(done, lambda summary: summary.machine).items()}
