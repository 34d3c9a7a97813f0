"""`tidemark sql-server`: answers queries over HTTP, each in a process of its own.

POST /sql          {"query": ..., "snapshot": 3, "at": "2026-01-05T00:00:00Z", "name": ...}; all but the query are optional
DELETE /sql/NAME   cancel your own query of that name
GET /health        whether the server is up; needs no token

It publishes its address and the first token in a file that only the user can read.
"""

import asyncio
import json
import os
import secrets
import signal
import socket
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orchestration.connectors.collector.http_protocol import BoundedHttpProtocol
from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Limits, Question, RefusedError
from orchestration.serving.sql.client import Address, address_file
from orchestration.serving.sql.encoding import JSON, Encoded
from orchestration.serving.sql.workers import CANCELLED, Workers
from orchestration.storage.views import Plant
from orchestration.utc import from_iso

LIMITS = Limits(seconds=60.0, rows=100_000, result_bytes=64 * 1024 * 1024)
MAX_ACTIVE, MAX_WAITING = 8, 200
MAX_BODY_BYTES = 1_000_000
POLL_SECONDS = 0.25


def serve(plant: Plant, port: int, users: Mapping[str, str], notify: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C. `users`: by token; commands of this user send the first token. `port` 0: any free port."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        listener = socket.create_server(("127.0.0.1", port), backlog=256)
    except OSError as error:
        raise TidemarkError(f"port {port} is not available: {error.strerror}; choose another one with --port.") from error
    file = address_file(plant.lake)
    try:
        with listener, closing(Workers(plant, LIMITS, MAX_ACTIVE)) as workers, suppress(KeyboardInterrupt):
            api = QueryApi(workers, users, FairQueue(MAX_ACTIVE, MAX_WAITING)).application()
            config = uvicorn.Config(
                api, http=BoundedHttpProtocol, ws="none", log_level="warning", access_log=False, timeout_graceful_shutdown=5
            )
            server = uvicorn.Server(config)
            _publish(file, Address(listener.getsockname()[1], next(iter(users)), os.getpid()), notify)
            server.run(sockets=[listener])
    finally:
        file.unlink(missing_ok=True)


def _publish(file: Path, address: Address, notify: Callable[[str], None]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(asdict(address)), encoding="utf-8")
    draft.rename(file)
    notify(f"http://127.0.0.1:{address.port}/sql accepts queries; the token is in {file}")


class FairQueue:
    """Who runs next: a limited number of queries at once, at most half of them from one user, and users in turn.

    A user has at most that half in the line for a slot, so whoever joins the line waits for few queries of each other user. A queue belongs
    to one event loop.
    """

    def __init__(self, max_active: int, max_waiting: int) -> None:
        """`max_waiting`: queries of one user that wait; further ones are refused."""
        self._max_waiting = max_waiting
        self._waiting: Counter[str] = Counter()
        self._of_user = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(max(max_active // 2, 1)))
        self._slots = asyncio.Semaphore(max_active)

    @asynccontextmanager
    async def slot(self, user: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it for the duration of the context. RefusedError if too many queries of the user wait."""
        if self._waiting[user] >= self._max_waiting:
            raise RefusedError(f"{self._waiting[user]} queries of {user} are waiting already: try again later.")
        async with AsyncExitStack() as held:
            self._waiting[user] += 1
            try:
                for semaphore in (self._of_user[user], self._slots):
                    await held.enter_async_context(semaphore)
            finally:
                self._waiting[user] -= 1
            yield


@dataclass
class QueryApi:
    """The routes and their state. `users`: by token."""

    workers: Workers
    users: Mapping[str, str]
    queue: FairQueue
    active: dict[str, str] = field(default_factory=dict)
    """User of each query that runs or waits, by its name; nobody, once it is cancelled."""

    def application(self) -> Starlette:
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
