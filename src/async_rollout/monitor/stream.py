"""Server-sent events: what changed in the list of cells, to every open page."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from async_rollout.monitor.watcher import Watcher

_POLL_SEC = 0.5
_ALIVE_SEC = 15.0  # between two signs of life, so that proxies keep the connection
_RETRY_MS = 1000  # after which a browser tries again


class Stream:
    """Events of one server. Their ids name it, so that a page notices a restart and takes all anew."""

    def __init__(self, watcher: Watcher):
        self._watcher = watcher
        self._boot = secrets.token_hex(4)

    async def lines(self, last_id: str | None) -> AsyncIterator[str]:
        """Event-stream text, without end: first everything since `last_id`, then every change."""
        boot, _, revision = (last_id or "").partition("-")
        seen = int(revision) if boot == self._boot and revision.isdecimal() else 0
        fresh, told, quiet = seen == 0, None, 0.0
        yield f"retry: {_RETRY_MS}\n\n"
        while True:
            revision, sweep, cards, gone = self._watcher.changes(seen)
            if fresh or revision > seen or sweep != told:
                news = {
                    "fresh": fresh,
                    "sweep": asdict(sweep),
                    "cells": list(map(asdict, cards)),
                    "gone": gone,
                }
                yield _event(f"{self._boot}-{revision}", news)
                fresh, seen, told, quiet = False, revision, sweep, 0.0
            elif quiet >= _ALIVE_SEC:
                yield ": alive\n\n"
                quiet = 0.0
            await asyncio.sleep(_POLL_SEC)
            quiet += _POLL_SEC


def _event(id_: str, value: Any) -> str:
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return f"id: {id_}\nevent: cells\ndata: {text}\n\n"
