"""Reading a cell's directory: a file that is damaged or foreign is never taken for a result."""

import json
from dataclasses import fields
from pathlib import Path

from pydantic import ValidationError

from async_rollout.records.files import read_jsonl, refuse_constant
from async_rollout.records.rows import MetricsRow
from async_rollout.records.summary import SCHEMA_VERSION, Summary

SUMMARY_FILE = "summary.json"
METRICS_FILE = "metrics.jsonl"


class SummaryError(ValueError):
    """A `summary.json` that cannot be used; the text names the file and the reason."""


def read_summary(path: Path) -> Summary:
    """A cell's summary.

    Raises FileNotFoundError if there is none, and SummaryError if the file is empty, cut,
    not strict JSON, of another schema version, or holds a value outside of its domain.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SummaryError(f"{path}: not UTF-8 text ({error.reason})") from None
    if not text.strip():
        raise SummaryError(f"{path}: the file is empty")
    try:
        record = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise SummaryError(f"{path}: not strict JSON ({error})") from None
    if not isinstance(record, dict) or "schema_version" not in record:
        raise SummaryError(f"{path}: not a summary (no `schema_version`)")
    if record["schema_version"] != SCHEMA_VERSION:
        raise SummaryError(
            f"{path}: schema version {record['schema_version']!r}, this program reads {SCHEMA_VERSION}"
        )
    try:
        return Summary.model_validate(record)
    except ValidationError as error:
        raise SummaryError(f"{path}: {_reasons(error)}") from None


def is_done(path: Path, config_hash: str) -> bool:
    """True if `path` is a sound summary of a run of exactly this config."""
    try:
        return read_summary(path).config_hash == config_hash
    except (FileNotFoundError, SummaryError):
        return False


def read_metrics(cell: Path) -> list[MetricsRow]:
    """One row a commit, in order of version, from a cell's directory.

    A published snapshot holds them compressed. A torn last line is left out. Raises
    FileNotFoundError, or ValueError that names file and line if a row is not a `MetricsRow`.
    """
    path = cell / METRICS_FILE
    if not path.exists() and (packed := cell / f"{METRICS_FILE}.xz").exists():
        path = packed
    names = {field.name for field in fields(MetricsRow)}
    rows = []
    for number, row in enumerate(read_jsonl(path), 1):
        if row.keys() != names:
            wrong = ", ".join(sorted(row.keys() ^ names))
            raise ValueError(f"{path}:{number}: not a metrics row of this version (fields: {wrong})")
        rows.append(MetricsRow(**row))
    return rows


def _reasons(error: ValidationError, shown: int = 3) -> str:
    """The first errors of a validation, with place and value."""
    found = error.errors(include_url=False)
    parts = []
    for item in found[:shown]:
        place = ".".join(str(step) for step in item["loc"])
        value = "" if item["type"] == "missing" else f" ({json.dumps(item['input'], default=str)[:60]})"
        parts.append(f"{place}{value}: {item['msg']}")
    more = f" and {len(found) - shown} more" if len(found) > shown else ""
    return "; ".join(parts) + more
