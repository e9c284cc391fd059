"""`collect_metrics`: what the monitor's API tells, for a program of your own."""

from dataclasses import asdict
from pathlib import Path
from typing import Any


def collect_metrics(results: str | Path) -> dict[str, dict[str, Any]]:
    """Card and history of every cell below `results`, by `<experiment>/<dataset>/<cell>`.

    Each is `{"card": ..., "metrics": ...}`, as /api/cells and /api/metrics/<id> give them.
    Raises FileNotFoundError if there is no such directory.
    """
    from async_rollout.monitor.watcher import Watcher

    path = Path(results)
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: no such directory")
    watcher = Watcher(path)
    watcher.scan()
    return {
        card.id: {"card": asdict(card), "metrics": asdict(watcher.metrics(card.id))}
        for card in watcher.listing().cells
    }
