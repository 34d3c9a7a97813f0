"""The live page: its routes, each a view with a query and a template, and the stream of events that keeps open pages true."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from orchestration.conf.model import Conf
from orchestration.rendering import plain
from orchestration.web import metrics
from orchestration.web.facts import Facts
from orchestration.web.overview import Counts, Overview, age, lasting, overview
from orchestration.web.security import Guarded

ALIVE_SECONDS = 15.0
"""A comment is sent after so long without news, so that a connection that is gone is noticed."""


class Site:
    """Of one conf."""

    def __init__(self, conf: Conf) -> None:
        """Reads nothing yet."""
        self._conf, counts = conf, Counts()
        self._facts: Facts[Overview] = Facts(conf.lake, lambda: overview(conf, datetime.now(UTC), counts))

    def application(self, hosts: tuple[str, ...], token: str | None) -> ASGIApp:
        """The ASGI application. `hosts`: see Guarded; `token` None: whoever reaches it may look."""
        routes = [
            Route("/", self.page),
            Route("/events", self.events),
            Route("/api/overview", self.api),
            Route("/metrics", self.metrics),
            Mount("/static", StaticFiles(directory=str(files("orchestration.web").joinpath("static")))),
        ]
        return Guarded(Starlette(routes=routes, lifespan=self._life), hosts, token)

    async def page(self, request: Request) -> Response:
        """GET /: the overview."""
        return HTMLResponse(render("overview.html", view="overview", pipeline=self._conf.pipeline, **await self._shown()))

    async def events(self, request: Request) -> Response:
        """GET /events: the live part of the overview each time that it has changed, as server-sent events."""
        return StreamingResponse(self._news(), media_type="text/event-stream")

    async def api(self, request: Request) -> Response:
        """GET /api/overview: what the overview shows, as JSON."""
        return JSONResponse(plain(as_json(await self._facts.newest())))

    async def metrics(self, request: Request) -> Response:
        """GET /metrics: for Prometheus."""
        return PlainTextResponse(metrics.text(await self._facts.newest()), media_type=metrics.MEDIA_TYPE)

    async def _shown(self) -> dict[str, Any]:
        return {"facts": await self._facts.newest(), "now": datetime.now(UTC)}

    async def _news(self) -> AsyncIterator[str]:
        stream = self._facts.stream()
        waiting = asyncio.ensure_future(anext(stream))
        try:
            while True:
                done, _ = await asyncio.wait([waiting], timeout=ALIVE_SECONDS)
                if done:
                    html = render("overview_live.html", facts=waiting.result(), now=datetime.now(UTC))
                    yield f"data: {json.dumps(html)}\n\n"
                    waiting = asyncio.ensure_future(anext(stream))
                else:
                    yield ": still there\n\n"
        finally:
            waiting.cancel()
            with suppress(asyncio.CancelledError, RuntimeError):
                await stream.aclose()  # type: ignore[attr-defined]

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._facts.watch())
        yield
        watching.cancel()


def as_json(facts: Overview) -> dict[str, Any]:
    """What a program wants of it."""
    snapshot = facts.snapshot and {"snapshot_id": facts.snapshot.snapshot_id, "at": facts.snapshot.at}
    nodes, troubles = ([vars(each) for each in of] for of in (facts.nodes, facts.troubles))
    return {"at": facts.at, "snapshot": snapshot, "nodes": nodes, "account": facts.account, "troubles": troubles, "parts": facts.parts}


@cache
def _templates() -> Environment:
    templates = Environment(loader=PackageLoader("orchestration.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    templates.globals |= {"age": age, "lasting": lasting}
    templates.filters["commas"] = lambda number: f"{number:,}"
    return templates


def render(template: str, **values: Any) -> str:
    """Every value is escaped."""
    return _templates().get_template(template).render(**values)
