"""The cells as a table for a terminal."""

import time
from collections.abc import Iterable
from pathlib import Path

from async_rollout.monitor.schema import Card, Listing
from async_rollout.monitor.state import STATES
from async_rollout.monitor.text import duration, one_line
from async_rollout.monitor.watcher import Watcher

_HEAD = ("state", "cell", "version", "pass", "eval", "stale", "tok/s", "tries", "seen")
_LEFT = 2  # columns of text


def status(results: Path, width: int, now: float | None = None) -> str:
    """What the page's list shows, the troubled cells first, in lines of at most `width` characters."""
    now = time.time() if now is None else now
    watcher = Watcher(results)
    watcher.scan(now)
    listing = watcher.listing()
    order = {state: place for place, state in enumerate(_URGENT)}
    cards = sorted(listing.cells, key=lambda card: (order[card.state], card.id))
    lines = [_counts(listing), *_table([_HEAD, *(_row(card, now) for card in cards)])]
    for card in cards:
        lines += [f"{f.level}: {card.id}: {f.text}" for f in card.findings if f.level != "note"]
    lines += [f"{f.level}: {f.text}" for f in listing.sweep.findings]
    return "\n".join(one_line(line)[:width] for line in lines)


_URGENT = ("failed", "stalled", "collapsed", "retrying", "running", "setting up", "queued", "done")


def _counts(listing: Listing) -> str:
    states = listing.sweep.states
    counts = ", ".join(f"{states[state]} {state}" for state in STATES if state in states)
    return f"{len(listing.cells)} cells: {counts}" if listing.cells else "no cells"


def _row(card: Card, now: float) -> tuple[str, ...]:
    return (
        card.state,
        card.id,
        f"{card.version}/{card.updates or '?'}",
        _number(card.pass_rate, ".2f"),
        _number(card.eval_pass_rate, ".2f"),
        f"{_number(card.staleness, '.2f')} of {card.k}",
        _number(card.tokens_per_sec, ",.0f"),
        str(card.attempts),
        duration(now - card.last_sign) if card.last_sign else "-",
    )


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _table(rows: list[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            text.ljust(w) if place < _LEFT else text.rjust(w)
            for place, (text, w) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
