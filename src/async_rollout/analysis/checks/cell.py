"""One finished cell: do its numbers add up, do its files belong together, and what was unusual."""

import json
from collections.abc import Iterator

from async_rollout.analysis.checks.check import Level
from async_rollout.analysis.collect import Cells
from async_rollout.analysis.settings import flat
from async_rollout.config.cells import Cell, hash_of
from async_rollout.records.summary import Flow, Summary

_SHOWN = 3  # keys in which two configurations differ


def accounts(cells: Cells, cell: Cell, summary: Summary) -> Iterator[tuple[Level, str]]:
    """Sums that must agree, and the bound on staleness."""
    if float(summary.k) < summary.staleness_max:
        yield "error", f"trained a token {summary.staleness_max} versions old, above K = {summary.k}"
    for what, flow in (("samples", summary.samples), ("tokens", summary.tokens)):
        if flow.generated != _accounted(flow):
            yield (
                "error",
                f"{what} do not add up: {flow.generated} generated, {_accounted(flow)} accounted for",
            )
    ages = summary.staleness_histogram.trained
    oldest = max((int(age) for age, count in ages.items() if count), default=0)
    if oldest != summary.staleness_max:
        yield "error", f"staleness_max is {summary.staleness_max}, the oldest trained token was {oldest} old"
    trained = sum(ages.values())
    if trained != summary.tokens.trained:
        yield "error", f"ages of {trained} trained tokens are known, {summary.tokens.trained} were trained"


def files(cells: Cells, cell: Cell, summary: Summary) -> Iterator[tuple[Level, str]]:
    """Configuration and metrics that are not those of the summary beside them."""
    if hash_of(summary.config) != summary.config_hash:
        yield (
            "error",
            f"its config is not the one of its config_hash, {summary.config_hash}: it was exchanged",
        )
    path = cells.directory(cell) / "config.json"
    if path.is_file():
        yield from _configuration(path.read_text(encoding="utf-8", errors="replace"), summary)
    if cell in cells.damaged_logs:
        text = cells.damaged_logs[cell]
        yield ("warning" if text == "no metrics.jsonl" else "error"), text
    elif len(cells.commits[cell]) != summary.updates:
        yield "error", f"metrics.jsonl has {len(cells.commits[cell])} commits, the run {summary.updates}"


def notable(cells: Cells, cell: Cell, summary: Summary) -> Iterator[tuple[Level, str]]:
    """What is no fault of the records and yet matters."""
    if summary.status == "collapsed":
        yield "warning", "the policy collapsed"
    if summary.attempts > 1:
        yield "warning", f"needed {summary.attempts} attempts: left out of comparisons of speed"
    if summary.infrastructure_failures:
        yield "warning", f"{summary.infrastructure_failures} answers could not be judged"
    if not summary.eval_pass_rate:
        yield "warning", "was never evaluated on held-out tasks"
    if summary.empty_updates:
        yield "note", f"nothing was trainable in {summary.empty_updates} of {summary.updates} updates"


def _configuration(text: str, summary: Summary) -> Iterator[tuple[Level, str]]:
    try:
        config = json.loads(text)
    except ValueError as error:
        yield "error", f"config.json is not JSON ({error})"
        return
    if config == summary.config:
        return
    theirs, ours = (flat(c) if isinstance(c, dict) else {} for c in (config, summary.config))
    differing = sorted(key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key))
    shown = ", ".join(f"{key} {theirs.get(key)!r} for {ours.get(key)!r}" for key in differing[:_SHOWN])
    more = f" and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
    yield "error", f"config.json is of another run than the summary: {shown}{more}"


def _accounted(flow: Flow) -> int:
    return flow.trained + sum(flow.dropped.values()) + flow.abandoned
