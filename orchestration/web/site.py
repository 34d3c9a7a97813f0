"""The live page: its routes, each a view with a query and a template, and the stream of events that keeps open pages true."""

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError, sentence_of
from orchestration.rendering import plain
from orchestration.serving.sql.encoding import CSV, GUARDED_CSV
from orchestration.storage.delta import each_table_opened_once, version_of
from orchestration.storage.ops_tables import LABELS, NOTES
from orchestration.storage.snapshots import find_snapshot
from orchestration.web import alerts, editor, quality, runs
from orchestration.web.anomalies import add_label
from orchestration.web.batches import batches
from orchestration.web.devices import devices
from orchestration.web.facts import Facts
from orchestration.web.groups import groups
from orchestration.web.last_hour import LastHour
from orchestration.web.metrics import MEDIA_TYPE, Metrics
from orchestration.web.overview import Overview, overview
from orchestration.web.pages import render
from orchestration.web.quarantine import shown_quarantine
from orchestration.web.queries import Queries, ViewRequest
from orchestration.web.readings import readings
from orchestration.web.security import HEALTH, FormToken, Guarded, form_of, is_foreign, whole
from orchestration.web.view import SPAN, View

LOOK_SECONDS = 30.0
MOST_STREAMS = 200
"""Open pages that are told what is new."""
MOST_DONE = 100
"""Forms that are kept, to know one that is sent again."""
Key = tuple[str, str]
"""The path of a view, and its parameters."""
STATUS: Key = ("/", "")
"""The view that the status line of all others shows in short."""
ACTIONS: dict[str, tuple[str, Callable[[ViewRequest, dict[str, str]], None]]] = {
    "/alerts/acknowledge": ("/alerts", alerts.acknowledge),
    "/alerts/silence": ("/alerts", alerts.silence),
    "/alerts/unsilence": ("/alerts", alerts.unsilence),
    "/groups/labels": ("/groups", add_label),
    "/quality/release": ("/quality", quality.release),
    "/runs/notes": ("/runs", runs.add_note),
    "/sql/queries": ("/sql", editor.save_query),
}
"""The action of a form, by the path that it is sent to, and the view that shows the result."""


class Site:
    def __init__(self, conf: Conf) -> None:
        self._conf, self._queries, self._form_token, self._metrics = conf, Queries(conf), FormToken(), Metrics(conf)
        hour, self._streams = LastHour(), 0
        views = (
            View("/", "Overview", "overview.html", lambda request: overview(request, hour), ages=True),
            View("/alerts", "Alerts", "alerts.html", alerts.alerts, asks=True),
            View("/groups", "Groups", "groups.html", groups, is_of_snapshot=True, params=("group", "device", *SPAN)),
            View(
                "/readings",
                "Readings",
                "readings.html",
                readings,
                is_of_snapshot=True,
                is_in_menu=False,
                params=("device", "metric", "end"),
            ),
            View("/devices", "Devices", "devices.html", devices, is_of_snapshot=True, params=("device", "find", *SPAN)),
            View("/batches", "Batches", "batches.html", batches, ages=True, params=SPAN),
            View("/quarantine", "Quarantine", "quarantine.html", shown_quarantine, params=("rule",)),
            View("/quality", "Quality", "quality.html", quality.quality, params=("of",)),
            View("/runs", "Runs", "runs.html", runs.shown_runs),
        )
        self._editor = View("/sql", "SQL", "editor.html", lambda request: None)
        self._views = {view.path: view for view in views}
        # Two, as who waits for queries keeps a thread.
        self._threads = {asks: ThreadPoolExecutor(4, "view") for asks in (False, True)}
        self._acting, self._done = asyncio.Lock(), deque[object](maxlen=MOST_DONE)
        self._facts: Facts[Key, Any] = Facts(
            conf.lake, self._read, self._cache_key, lambda key: self._threads[(view := self._views[key[0]]).is_of_snapshot or view.asks]
        )

    def application(self, hosts: tuple[str, ...], token: str | None) -> ASGIApp:
        """The ASGI application. `hosts`: see Guarded; `token` None: whoever reaches it may look."""
        routes = [
            Route("/sql", self.editor),
            Route("/sql/answer.{format}", self.answer),
            *(Route(path, self.page) for path in self._views),
            *(Route(path, self.act, methods=["POST"]) for path in ACTIONS),
            Route("/events", self.events),
            Route("/api/overview", self.api),
            Route("/api/completions", self.completions),
            Route("/api/tables", self.tables),
            Route("/metrics", self.metrics),
            Route(HEALTH, self.health),
            Mount("/static", StaticFiles(directory=str(files("orchestration.web").joinpath("static")))),
        ]
        return Guarded(Starlette(routes=routes, lifespan=self._life), hosts, token)

    async def page(self, request: Request) -> Response:
        """GET of a view, as its address says."""
        view = self._views[request.url.path]
        params = view.params_text(request.query_params)
        try:
            facts = await self._facts.newest((view.path, params))
        except TidemarkError as error:
            return await self._framed(view, self._rendered(view, error), 500, params)
        return await self._framed(view, self._rendered(view, facts), 200, params, _number_of(facts))

    async def editor(self, request: Request) -> Response:
        """GET /sql: the editor, and the answer of the query in its address."""
        facts = await editor.editor(self._conf, self._queries, request)
        live = await asyncio.to_thread(self._rendered, self._editor, facts)
        return await self._framed(self._editor, live, 400 if facts.error else 200)

    async def answer(self, request: Request) -> Response:
        """GET /sql/answer.csv and .parquet: the whole answer of the query in the address, as a file; of another site's link the editor."""
        if is_foreign(request.headers):
            return RedirectResponse(f"/sql?{urlencode(request.query_params.multi_items())}", 303)
        accept = editor.FORMATS.get(request.path_params["format"])
        if accept == CSV and request.query_params.get("guard") == "formulas":
            accept = GUARDED_CSV
        if accept is None:
            return PlainTextResponse("there are answer.csv and answer.parquet\n", 404)
        try:
            answer = await self._queries.answer(request, editor.question_of(request.query_params), accept)
        except TidemarkError as error:
            return PlainTextResponse(f"{error}\n", 400)
        disposition = {"Content-Disposition": f"attachment; filename=answer.{request.path_params['format']}"}
        return Response(answer.body, media_type=answer.media_type, headers={**answer.headers, **disposition})

    async def completions(self, request: Request) -> Response:
        """GET /api/completions?text=...&cursor=N: what may stand there in a query."""
        text, cursor = request.query_params.get("text", ""), request.query_params.get("cursor", "")
        return await _json(lambda: editor.completions(self._queries.tables, text, whole(cursor, len(text))))

    async def tables(self, request: Request) -> Response:
        """GET /api/tables: the tables of the newest snapshot; with ?name=... the columns of that one."""
        return await _json(lambda: editor.tables_or_columns(self._queries.tables(), request.query_params.get("name", "")))

    async def events(self, request: Request) -> Response:
        """GET /events: the status line, and the live part of a view, each time that they have changed, as server-sent events."""
        path = request.query_params.get("path", "/")
        view = self._views.get(path)
        if view is None and path != self._editor.path:
            return PlainTextResponse("this view does not change\n", 404)
        if request.method == "HEAD":  # the stream would never end
            return Response(media_type="text/event-stream")
        if self._streams >= MOST_STREAMS:
            return PlainTextResponse("too many pages are open; close some, and load this one again\n", 503, {"Retry-After": "30"})
        return StreamingResponse(self._news(view, view.params_text(request.query_params) if view else ""), media_type="text/event-stream")

    async def api(self, request: Request) -> Response:
        """GET /api/overview: what the overview shows, as JSON."""
        return JSONResponse(plain(as_json(await self._facts.newest(("/", "")))))

    async def metrics(self, request: Request) -> Response:
        """GET /metrics: for Prometheus."""
        facts = await self._facts.newest(("/", ""))
        return PlainTextResponse(await asyncio.to_thread(self._metrics.text, facts), media_type=MEDIA_TYPE)

    async def health(self, _: Request) -> Response:
        """GET /healthz: 200 while events are taken in, 503 while the lake stands still or cannot be read; for probes."""
        facts = await self._facts.recent(STATUS)
        if isinstance(facts, TidemarkError) or any(problem.stops_the_lake for problem in facts.problems):
            return PlainTextResponse("the lake stands still: `tidemark status problems` says why\n", 503)
        return PlainTextResponse("ok\n")

    async def act(self, request: Request) -> Response:
        """POST of a form that the page has given out: what it does is done once, then its view is shown; a script gets what went wrong."""
        form = await form_of(request)
        if not self._form_token.is_of(form):
            return PlainTextResponse("this form is not of this page, or of before its restart; go back, load it again, and send it\n", 403)
        view, act = ACTIONS[request.url.path]
        sent, is_script = (request.url.path, *sorted(form.items())), request.headers.get("accept") == "application/json"
        try:
            async with self._acting:  # who clicks twice sends a form twice
                if sent not in self._done:
                    await asyncio.to_thread(act, self._view_request(""), form)
                    self._done.append(sent)
        except (TidemarkError, OSError) as error:
            if is_script:
                return JSONResponse({"error": sentence_of(error), "field": getattr(error, "field", None)}, 400)
            shown = self._views.get(view, self._editor)
            return await self._framed(shown, self._rendered(shown, TidemarkError(sentence_of(error))), 400)
        return JSONResponse({}) if is_script else RedirectResponse(view, 303)

    def _view_request(self, params: str, snapshot_id: int | None = None) -> ViewRequest:
        return ViewRequest(self._conf, datetime.now(UTC), QueryParams(params), self._queries, snapshot_id)

    def _read(self, key: Key) -> Any:
        view = self._views[key[0]]
        with each_table_opened_once():
            snapshot = find_snapshot(self._conf.lake) if view.is_of_snapshot else None
            return view.read(self._view_request(key[1], snapshot.snapshot_id if snapshot else None))

    def _cache_key(self, key: Key) -> object:
        """Return the cache key of a view: all that it depends on. None: it depends on anything in the lake, and on the time."""
        view, lake = self._views[key[0]], self._conf.lake
        if view.is_of_snapshot:
            return find_snapshot(lake), version_of(NOTES.path(lake)), version_of(LABELS.path(lake))
        return None if view.ages else self._facts.number

    def _rendered(self, view: View, facts: Any) -> Markup:
        if isinstance(facts, TidemarkError):
            return Markup(render("error.html", error=str(facts)))
        return Markup(render(view.template, facts=facts, now=datetime.now(UTC), form_token=self._form_token.new()))

    async def _framed(self, view: View, live: Markup, code: int = 200, params: str = "", number: str = "") -> Response:
        values = {"views": [shown for shown in (*self._views.values(), self._editor) if shown.is_in_menu], "view": view, "live": live}
        values |= {"pipeline": self._conf.pipeline, "zone": self._conf.page.time_zone, "number": number}
        values["events"] = f"/events?{urlencode({'path': view.path})}{params and f'&{params}'}"
        return HTMLResponse(render("frame.html", **values, **_status(await self._facts.recent(STATUS))), code)

    async def _news(self, view: View | None, params: str) -> AsyncIterator[str]:
        shown: list[Any] = [None, None]
        self._streams += 1
        try:
            async for facts in self._facts.stream(STATUS, *([(view.path, params)] if view else ())):
                status, live = facts[0], facts[-1]
                news = _status(status) if status is not shown[0] else {}
                if view and live is not shown[1]:
                    news["live"] = self._rendered(view, live)
                shown = [status, live]
                yield f"id: {_number_of(live)}\ndata: {json.dumps(news)}\n\n"
        finally:
            self._streams -= 1

    async def _look(self) -> None:
        """Read the overview before anyone asks, and then now and again: its sparklines have lags that were seen."""
        while True:
            await self._facts.recent(STATUS)
            await asyncio.sleep(LOOK_SECONDS)

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        self._queries.start()
        tasks = [asyncio.create_task(work) for work in (self._facts.watch(), self._look())]
        yield
        for task in tasks:
            task.cancel()
        await self._queries.close()


def as_json(facts: Overview) -> dict[str, Any]:
    """Return the overview for programs."""
    snapshot = facts.snapshot and {"snapshot_id": facts.snapshot.snapshot_id, "at": facts.snapshot.at}
    nodes = [vars(node) | {"rate": node.rate} for node in facts.nodes]
    wrong = {"problems": [vars(problem) for problem in facts.problems], "known_until": facts.known_until}
    return {"at": facts.at, "snapshot": snapshot, "nodes": nodes, "account": facts.account, **wrong, "parts": facts.parts}


async def _json(read: Callable[[], Any]) -> Response:
    """Answer a script with what is read in a thread, or with why it cannot be read."""
    try:
        return JSONResponse(await asyncio.to_thread(read))
    except TidemarkError as error:
        return JSONResponse({"error": str(error)}, 400)


def _status(facts: Overview | TidemarkError) -> dict[str, Any]:
    """Return the status line, and of each view how many problems belong to it; each alert that fires unseen is one."""
    if isinstance(facts, TidemarkError):
        return {"status": escape(str(facts)), "counts": {}}
    counts = Counter(problem.view.partition("?")[0] for problem in facts.problems if problem.view != "/" and problem.subject != "alerts")
    counts["/alerts"] += sum(row["seen"] is None for row in facts.firing)
    return {"status": Markup(render("status.html", facts=facts, now=datetime.now(UTC))), "counts": counts}


def _number_of(facts: Any) -> str:
    """Return a number for the facts that a page shows: they are not sent again to a page that has just shown them."""
    return "" if isinstance(facts, TidemarkError) else str(facts.at.timestamp())
