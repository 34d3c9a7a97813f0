"""The live page: its routes, each a view with a query and a template, and the stream of events that keeps open pages true."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from orchestration.conf.model import Conf
from orchestration.rendering import plain
from orchestration.web.facts import Facts
from orchestration.web.lag import SPANS, lag
from orchestration.web.metrics import MEDIA_TYPE, Metrics
from orchestration.web.overview import Counts, Overview, age, lasting, overview
from orchestration.web.quarantine import shown_quarantine
from orchestration.web.runs import shown_runs
from orchestration.web.security import Guarded

LONGEST_PARAMETER = 1000


@dataclass(frozen=True)
class View:
    """A page. `template`: of its live part. `read`: its facts, by a conf, the time and one parameter of the address."""

    path: str
    title: str
    template: str
    read: Callable[[Conf, datetime, str], Any]
    parameter: str = ""


class Site:
    """Of one conf."""

    def __init__(self, conf: Conf) -> None:
        """Reads nothing yet."""
        self._conf, self._metrics, counts = conf, Metrics(conf), Counts()
        views = (
            View("/", "Overview", "overview.html", lambda conf, now, _: overview(conf, now, counts)),
            View("/batches", "Batches", "batches.html", lag, "span"),
            View("/quarantine", "Quarantine", "quarantine.html", shown_quarantine, "rule"),
            View("/runs", "Runs", "runs.html", lambda conf, now, _: shown_runs(conf, now)),
        )
        self._views = {view.path: view for view in views}
        self._facts: Facts[tuple[str, str], Any] = Facts(conf.lake, self._read)

    def application(self, hosts: tuple[str, ...], token: str | None) -> ASGIApp:
        """The ASGI application. `hosts`: see Guarded; `token` None: whoever reaches it may look."""
        routes = [
            *(Route(path, self.page) for path in self._views),
            Route("/events", self.events),
            Route("/api/overview", self.api),
            Route("/metrics", self.metrics),
            Mount("/static", StaticFiles(directory=str(files("orchestration.web").joinpath("static")))),
        ]
        return Guarded(Starlette(routes=routes, lifespan=self._life), hosts, token)

    async def page(self, request: Request) -> Response:
        """GET of a view, as its address says."""
        view, value = self._view_of(request.url.path, request)
        live = self._live(view, await self._facts.newest((view.path, value)))
        known = {"path": view.path, view.parameter: value} if value else {"path": view.path}
        values = {"views": self._views.values(), "view": view, "live": live, "events": f"/events?{urlencode(known)}"}
        return HTMLResponse(render("frame.html", pipeline=self._conf.pipeline, **values))

    async def events(self, request: Request) -> Response:
        """GET /events: the live part of a view each time that it has changed, as server-sent events."""
        view, value = self._view_of(request.query_params.get("path", "/"), request)
        return StreamingResponse(self._news(view, value), media_type="text/event-stream")

    async def api(self, request: Request) -> Response:
        """GET /api/overview: what the overview shows, as JSON."""
        return JSONResponse(plain(as_json(await self._facts.newest(("/", "")))))

    async def metrics(self, request: Request) -> Response:
        """GET /metrics: for Prometheus."""
        facts = await self._facts.newest(("/", ""))
        return PlainTextResponse(await asyncio.to_thread(self._metrics.text, facts), media_type=MEDIA_TYPE)

    def _view_of(self, path: str, request: Request) -> tuple[View, str]:
        view = self._views.get(path) or self._views["/"]
        return view, request.query_params.get(view.parameter, "")[:LONGEST_PARAMETER] if view.parameter else ""

    def _read(self, key: tuple[str, str]) -> Any:
        view = self._views[key[0]]
        return view.read(self._conf, datetime.now(UTC), key[1])

    def _live(self, view: View, facts: Any) -> Markup:
        return Markup(render(view.template, facts=facts, now=datetime.now(UTC)))

    async def _news(self, view: View, value: str) -> AsyncIterator[str]:
        async for facts in self._facts.stream((view.path, value)):
            yield f"data: {json.dumps(self._live(view, facts))}\n\n"

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
    templates.globals |= {"age": age, "lasting": lasting, "spans": [*SPANS]}
    templates.filters["commas"] = lambda number: f"{number:,}"
    return templates


def render(template: str, **values: Any) -> str:
    """Every value is escaped."""
    return _templates().get_template(template).render(**values)
