"""How often each value of a record stands in a set of cells."""

from collections import Counter
from collections.abc import Callable, Iterable

from async_rollout.records.summary import Summary


def tally(done: Iterable[Summary], part: Callable[[Summary], dict]) -> dict[str, dict[str, int]]:
    """For each key of a part of the summaries: its values, and in how many cells they stand."""
    records = [part(summary) for summary in done]
    keys = sorted({key for record in records for key in record})
    return {
        key: dict(sorted(Counter(str(record.get(key, "not given")) for record in records).items()))
        for key in keys
    }
