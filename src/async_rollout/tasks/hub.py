"""Rows of a dataset on the Hugging Face hub, fetched once and cached by `datasets` (extra `hub`)."""

import re
from typing import Any, NamedTuple

from async_rollout.tasks.task import TaskError


class Hub(NamedTuple):
    """Where a dataset lies."""

    id: str
    subset: str | None = None


class HubRows(NamedTuple):
    """Rows of the train and the test split, and the revision that they are of."""

    train: list[dict[str, Any]]
    test: list[dict[str, Any]]
    revision: str


def hub_rows(dataset: str, hub: Hub, revision: str) -> HubRows:
    """Both splits. Raises TaskError, in one line, where `datasets` or the network is missing."""
    instead = (
        f"or bring its files: `async-rollout prepare {dataset} --from FILE --out tasks.jsonl`, "
        "then `jsonl:tasks.jsonl`"
    )
    try:
        from datasets import load_dataset, load_dataset_builder
    except ImportError as error:
        raise TaskError(
            f"dataset `{dataset}` needs `datasets` ({error}): pip install -e '.[hub]'; {instead}"
        ) from None
    try:
        builder = load_dataset_builder(hub.id, hub.subset, revision=revision)
        splits = load_dataset(hub.id, hub.subset, revision=revision)
    except Exception as error:  # hub, network and cache each have their own; all mean the same here
        reason = " ".join(str(error).split())[:200]
        raise TaskError(
            f"dataset `{dataset}`: {hub.id} at revision {revision} is neither cached nor reachable "
            f"({type(error).__name__}: {reason}); prepare it once where there is a network, {instead}"
        ) from error
    commit = re.search(r"@([0-9a-f]{40})", str(builder.base_path))
    found = commit[1] if commit else str(builder.hash)
    return HubRows([dict(row) for row in splits["train"]], [dict(row) for row in splits["test"]], found)
