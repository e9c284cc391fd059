"""The monitor's pages and answers. Every path is fixed; a cell's id is looked up, never opened."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from async_rollout.monitor.detail import detail_of
from async_rollout.monitor.guard import Guard
from async_rollout.monitor.plotly_file import PLOTLY, style_hashes
from async_rollout.monitor.prometheus import CONTENT_TYPE, exposition
from async_rollout.monitor.schema import json_schemas
from async_rollout.monitor.stream import Stream
from async_rollout.monitor.watcher import Watcher, WatchThread

STATIC = Path(str(files("async_rollout.monitor") / "static"))
_NO_CELL = {"error": "no such cell"}


def build_app(results: Path, hosts: frozenset[str], token: str | None = None) -> Starlette:
    """The application; it watches `results` from start-up to shutdown."""
    watcher = Watcher(results)
    stream = Stream(watcher)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        thread = WatchThread(watcher)
        thread.start()
        yield
        await run_in_threadpool(thread.stop)

    def page(request: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})

    def plotly_js(request: Request) -> Response:
        return FileResponse(PLOTLY, media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})

    def cells(request: Request) -> Response:
        return _json(asdict(watcher.listing()))

    def cell(request: Request) -> Response:
        id_ = request.path_params["id"]
        found, card = watcher.cell(id_), watcher.card(id_)
        return _json(asdict(detail_of(found, card))) if found and card else _json(_NO_CELL, 404)

    def metrics(request: Request) -> Response:
        try:
            epoch = int(request.query_params.get("epoch", "-1"))
            after = float(request.query_params.get("after", "-1"))
        except ValueError:
            return _json({"error": "epoch and after are numbers"}, 400)
        found = watcher.metrics(request.path_params["id"], epoch, after)
        return _json(asdict(found)) if found else _json(_NO_CELL, 404)

    def schema(request: Request) -> Response:
        return _json(json_schemas())

    def prometheus(request: Request) -> Response:
        return Response(exposition(watcher.listing()), media_type=CONTENT_TYPE)

    async def events(request: Request) -> Response:
        lines = stream.lines(request.headers.get("last-event-id"))
        return StreamingResponse(lines, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    return Starlette(
        routes=[
            Route("/", page),
            Route("/api/cells", cells),
            Route("/api/cells/{id:path}", cell),
            Route("/api/metrics/{id:path}", metrics),
            Route("/api/schema", schema),
            Route("/api/stream", events),
            Route("/metrics", prometheus),
            Route("/static/plotly.min.js", plotly_js),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, hosts=hosts, token=token, styles=style_hashes())],
        lifespan=lifespan,
        exception_handlers={404: lambda request, error: PlainTextResponse("no such page\n", 404)},
    )


def _json(value: Any, status: int = 200) -> Response:
    """Strict JSON, safe in any context: no character can end a script or a line early."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return Response(text, status, media_type="application/json")
