"""The HTTP API of the sql-server: queries in, rows out as JSON, CSV or an Arrow stream.

POST /sql          {"query": ..., "snapshot": 3, "at": "2026-01-05T00:00:00Z", "name": ...}; all but the query are optional
DELETE /sql/NAME   cancel your own query of that name
GET /health        whether the server is up; needs no token
"""

import asyncio
import json
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Question
from orchestration.serving.sql.encoding import JSON, Encoded
from orchestration.serving.sql.fair_queue import FairQueue
from orchestration.serving.sql.refusal import RefusedError
from orchestration.serving.sql.workers import CANCELLED, Workers
from orchestration.utc import from_iso

MAX_BODY_BYTES = 1_000_000
POLL_SECONDS = 0.25


@dataclass
class QueryApi:
    """The routes and their state. `users`: by token."""

    workers: Workers
    users: Mapping[str, str]
    queue: FairQueue
    active: dict[str, str] = field(default_factory=dict)
    """User of each query that runs or waits, by its name; nobody, once it is cancelled."""

    def application(self) -> Starlette:
        """The ASGI application."""
        routes = (("/sql", self.sql, "POST"), ("/sql/{name}", self.cancel, "DELETE"), ("/health", self.health, "GET"))
        return Starlette(routes=[Route(path, endpoint, methods=[method]) for path, endpoint, method in routes])

    async def sql(self, request: Request) -> Response:
        """POST /sql."""
        user = self._user(request)
        if user is None:
            return _error(401, "send the token: Authorization: Bearer TOKEN.")
        try:
            question, name = _question(await _body(request))
            if name in self.active:
                raise RefusedError(f"a query of the name {name} is running already.")
            self.active[name] = user
            try:
                async with self.queue.slot(user):
                    if self.active[name] != user:
                        raise RefusedError(CANCELLED)
                    answer = await answer_unless_gone(self.workers, request, question, request.headers.get("accept", JSON), name)
            finally:
                del self.active[name]
            return Response(answer.body, headers=dict(answer.headers), media_type=answer.media_type)
        except TidemarkError as error:
            return _error(400 if error.exit_code == RefusedError.exit_code else 500, str(error))

    async def cancel(self, request: Request) -> Response:
        """DELETE /sql/NAME."""
        user, name = self._user(request), request.path_params["name"]
        if user is None or self.active.get(name) != user:
            return _error(404, f"you have no running query of the name {name}.")
        self.active[name] = ""
        self.workers.cancel(name)
        return JSONResponse({"cancelled": name})

    async def health(self, request: Request) -> Response:
        """GET /health."""
        return JSONResponse({"active": len(self.active)})

    def _user(self, request: Request) -> str | None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        # Every token is compared, each in constant time, so that the response time reveals nothing.
        users = [user for token, user in self.users.items() if secrets.compare_digest(token.encode(), given.encode())]
        return users[0] if users else None


async def answer_unless_gone(workers: Workers, request: Request, question: Question, accept: str, name: str) -> Encoded:
    """The answer; the query is cancelled if its client disconnects."""
    answer = asyncio.ensure_future(workers.answer(question, accept, name))
    while not answer.done():
        await asyncio.wait([answer], timeout=POLL_SECONDS)
        if not answer.done() and await request.is_disconnected():
            workers.cancel(name)
    return await answer


async def _body(request: Request) -> dict[str, Any]:
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MAX_BODY_BYTES:
            raise RefusedError(f"a request is at most {MAX_BODY_BYTES:,} bytes long.")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"the body is not JSON: {error}.") from error
    if not isinstance(body, dict) or not isinstance(body.get("query"), str):
        raise RefusedError('the body must be an object with a text "query".')
    return body


def _question(body: dict[str, Any]) -> tuple[Question, str]:
    unknown = body.keys() - {"query", "snapshot", "at", "name"}
    if unknown:
        raise RefusedError(f"unknown fields: {', '.join(sorted(unknown))}; there are query, snapshot, at and name.")
    snapshot, at, name = body.get("snapshot"), body.get("at"), body.get("name", uuid.uuid4().hex)
    if snapshot is not None and (type(snapshot) is not int or at is not None):
        raise RefusedError("snapshot must be an integer, and cannot be combined with at.")
    if not isinstance(name, str) or not 0 < len(name) <= 100 or not (name.isascii() and name.isprintable()):
        raise RefusedError("name must be a text of at most 100 printable ASCII characters.")
    try:
        instant = None if at is None else from_iso(at)
    except (TypeError, ValueError) as error:
        raise RefusedError(f"at must be an instant such as 2026-01-05T00:00:00Z: {error}.") from error
    return Question(body["query"], snapshot, instant), name


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status_code=status)
