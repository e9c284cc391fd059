"""What the rows of a cell's `results.jsonl` add up to, in one pass."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from async_rollout.records.files import read_jsonl


@dataclass(slots=True)
class Rows:
    """Counts over rows; tokens are action tokens. A row is trained, or dropped for a reason."""

    samples: Counter = field(default_factory=Counter)  # trained, or why dropped
    tokens: Counter = field(default_factory=Counter)
    ages: dict[str, Counter] = field(default_factory=lambda: {"trained": Counter(), "dropped": Counter()})
    trained: Counter = field(default_factory=Counter)  # group → its trained samples
    trained_at: dict[int, int] = field(default_factory=dict)  # group → the version of its step
    dropped: set[int] = field(default_factory=set)  # groups of which a sample was judged and dropped
    task: dict[int, str] = field(default_factory=dict)  # group → its task
    twice: list[tuple[int, int, int]] = field(default_factory=list)  # (group, sample, attempt)
    mislabelled: list[tuple[int, int]] = field(default_factory=list)  # (group, sample)
    unjudged: list[tuple[int, int]] = field(default_factory=list)


def count_rows(path: Path) -> Rows:
    """Read the rows.

    Raises FileNotFoundError, ValueError if a line is damaged, KeyError if a field is missing.
    """
    rows = Rows()
    seen: set[tuple[int, int, int]] = set()
    for row in read_jsonl(path):
        key = (row["group"], row["sample"], row["attempt"])
        if key in seen:
            rows.twice.append(key)
        seen.add(key)
        _add(rows, row)
    return rows


def _add(rows: Rows, row: dict) -> None:
    group, trained = row["group"], row["dropped"] is None
    actions = _actions(row)
    end = "trained" if trained else row["dropped"]
    rows.samples[end] += 1
    rows.tokens[end] += sum(n for _, n in actions)
    rows.task[group] = row["task_id"]
    oldest = min(version for version, _ in actions)
    at = row["trained_at"] if trained else row["staleness"] + oldest
    for version, n in actions:
        rows.ages["trained" if trained else "dropped"][at - version] += n
    if not trained:
        if row["dropped"] not in ("late", "cancelled"):  # a copy of a sample that was drawn again
            rows.dropped.add(group)
        return
    rows.trained[group] += 1
    if rows.trained_at.setdefault(group, at) != at or row["staleness"] != at - oldest:
        rows.mislabelled.append((group, row["sample"]))
    if row["reward"] is None:
        rows.unjudged.append((group, row["sample"]))


def _actions(row: dict) -> list[tuple[int, int]]:
    """[(policy version, action tokens)]: the versions' runs without what an environment wrote."""
    if len(row["turns"]) == 1:
        return [(version, n) for version, n in row["versions"]]
    versions = [version for version, n in row["versions"] for _ in range(n)]
    counts: Counter = Counter()
    place = 0
    for written, observed in row["turns"]:
        counts.update(versions[place : place + written])
        place += written + observed
    return list(counts.items())
