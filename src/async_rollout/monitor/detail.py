"""What a cell's page shows beyond its card: the ends of its files, read when asked for."""

from dataclasses import asdict
from pathlib import Path

from async_rollout.monitor.cell import WatchedCell
from async_rollout.monitor.files import json_rows, read_json, read_tail
from async_rollout.monitor.schema import Card, Detail
from async_rollout.monitor.timeline import cpu_shares, timeline
from async_rollout.records.cells import SUMMARY_FILE, SummaryError, read_summary
from async_rollout.records.summary import Summary

_LOG_BYTES = 16 << 10
_SAMPLE_BYTES = 128 << 10
_SAMPLES = 12
_TEXT = 4000  # characters of a prompt or an answer


def detail_of(cell: WatchedCell, card: Card) -> Detail:
    """Everything about one cell but its curves."""
    directory = cell.place.directory
    summary = _summary(cell)
    if summary:
        histogram = summary.staleness_histogram.model_dump()
        dropped, busy, source = summary.tokens.dropped, summary.busy_fraction, "busy spans of the whole run"
    else:
        histogram, dropped = {"trained": dict(cell.staleness)}, dict(cell.dropped)
        busy, source = cpu_shares(directory), "processor time of the last minute"
    config = read_json(directory / "config.json")
    return Detail(
        card=card,
        staleness=histogram,
        dropped=dropped,
        busy=busy,
        busy_source=source,
        timeline=timeline(directory, list(cell.recent.commits)),
        samples=_samples(directory),
        states=[asdict(row) for row in cell.states],
        logs={
            name: read_tail(directory / name, _LOG_BYTES).decode("utf-8", "replace")
            for name in ("stdout.log", "stderr.log")
        },
        config=config if isinstance(config, dict) else None,
    )


def _summary(cell: WatchedCell) -> Summary | None:
    if cell.ending is None:
        return None
    try:
        return read_summary(cell.place.directory / SUMMARY_FILE)
    except (OSError, SummaryError):  # it was replaced since the last look
        return None


def _samples(directory: Path) -> list[dict]:
    """The newest rows of results.jsonl, long texts cut."""
    rows = json_rows(read_tail(directory / "results.jsonl", _SAMPLE_BYTES))
    return [
        {name: value[:_TEXT] if isinstance(value, str) else value for name, value in row.items()}
        for row in reversed(rows[-_SAMPLES:])
    ]
