"""Looks at all cells, again and again, each as often as it deserves.

A cell that moved is looked at every second, the others less often the more there are, so that
thousands of finished cells on a network file system cost next to nothing.
"""

import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from async_rollout.monitor.card import card_of
from async_rollout.monitor.cell import WatchedCell
from async_rollout.monitor.files import printable
from async_rollout.monitor.health import disk_findings
from async_rollout.monitor.places import find_places
from async_rollout.monitor.schema import Card, Finding, Listing, Metrics, Sweep

TICK_SEC = 1.0
_LIVELY_SEC = 60.0  # a cell that changed within this time is looked at every tick
_PER_CELL_SEC = 0.005  # the others, and the list of directories: every n x this
_FINISHED = 3  # times rarer where there is a summary
_SIGN_STEP_SEC = 5  # a newer sign of life alone is news only in steps


class Watcher:
    """Cards and histories of a results directory. `revision` grows when a card changes."""

    def __init__(self, results: Path):
        self.results = results
        self.revision = 0
        self._cells: dict[str, WatchedCell] = {}
        self._cards: dict[str, tuple[int, Card]] = {}  # with the revision of their last change
        self._due: dict[str, float] = {}
        self._next_list = 0.0
        self._gone: list[tuple[int, str]] = []  # ids that vanished, with the revision of that
        self._findings: list[Finding] = []
        self._lock = threading.Lock()

    def scan(self, now: float | None = None) -> None:
        """Look at every cell that is due. One caller at a time."""
        now = time.time() if now is None else now
        rest = max(TICK_SEC, _PER_CELL_SEC * len(self._cells))
        if now >= self._next_list:
            self._list()
            self._next_list = now + rest
        for id_ in [id_ for id_, due in self._due.items() if due <= now]:
            cell = self._cells[id_]
            with self._lock:
                cell.look()
                self._update(card_of(cell, now))
            lively = not cell.ending and now - cell.last_sign < _LIVELY_SEC
            self._due[id_] = now + (TICK_SEC if lively else rest * (_FINISHED if cell.ending else 1))

    def listing(self) -> Listing:
        """Every cell that was looked at."""
        with self._lock:
            return Listing(self._sweep(), [card for _, card in self._cards.values()])

    def changes(self, since: int) -> tuple[int, Sweep, list[Card], list[str]]:
        """The revision now, and what changed after revision `since`: cards, and ids that are gone."""
        with self._lock:
            cards = [card for revision, card in self._cards.values() if revision > since]
            gone = [id_ for revision, id_ in self._gone if revision > since]
            return self.revision, self._sweep(), cards, gone

    def card(self, id_: str) -> Card | None:
        """One cell's card."""
        with self._lock:
            found = self._cards.get(id_)
        return found[1] if found else None

    def cell(self, id_: str) -> WatchedCell | None:
        """One cell with its history, for what is read on request."""
        with self._lock:
            cell = self._cells.get(id_) if id_ in self._cards else None
            if cell:
                cell.want_history()
            return cell

    def metrics(self, id_: str, epoch: int = -1, after: float = -1) -> Metrics | None:
        """A cell's history; only what follows version `after` if `epoch` still holds."""
        cell = self.cell(id_)
        if cell is None:
            return None
        with self._lock:
            curves = cell.curves
            columns = curves.after(after if epoch == curves.epoch else -1)
            evals = [
                {"version": e.version, "seconds": e.seconds, "sampled": e.sampled, "greedy": e.greedy}
                for e in cell.evals
            ]
            return Metrics(id_, curves.epoch, curves.stride, columns, evals)

    def _list(self) -> None:
        places = find_places(self.results)
        self._findings = disk_findings(self.results)
        with self._lock:
            for id_ in self._cells.keys() - places.keys():
                self.revision += 1
                self._gone.append((self.revision, id_))
                del self._cells[id_], self._due[id_]
                self._cards.pop(id_, None)
            for id_, place in places.items():
                if id_ not in self._cells:
                    self._cells[id_] = WatchedCell(place)
                    self._due[id_] = 0.0

    def _update(self, card: Card) -> None:
        found = self._cards.get(card.id)
        if found and card.last_sign - found[1].last_sign < _SIGN_STEP_SEC:
            card = replace(card, last_sign=found[1].last_sign)
        if not found or found[1] != card:
            self.revision += 1
            self._cards[card.id] = (self.revision, card)

    def _sweep(self) -> Sweep:
        states = Counter(card.state for _, card in self._cards.values())
        unread = len(self._cells) - len(self._cards)
        return Sweep(printable(self.results.name), dict(states), self._findings, unread)


class WatchThread(threading.Thread):
    """Scans once a tick until it is stopped."""

    def __init__(self, watcher: Watcher):
        super().__init__(name="watcher", daemon=True)
        self._watcher = watcher
        self._stopped = threading.Event()

    def run(self) -> None:
        """Body of the thread."""
        while not self._stopped.is_set():
            self._watcher.scan()
            self._stopped.wait(TICK_SEC)

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stopped.set()
        self.join()
