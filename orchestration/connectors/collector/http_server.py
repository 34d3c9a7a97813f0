"""HTTP as a kind of collected source: uvicorn, with our protocol and our signals.

POST /events: the events of a body, with 202 once they are on the disk. GET /health: whether the collector is up; needs no token.
"""

import asyncio
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orchestration.conf.transport_settings import HttpSettings
from orchestration.connectors.collector.bodies import RefusedError, payloads, too_long, unpacked
from orchestration.connectors.collector.http_protocol import BoundedHttpProtocol
from orchestration.connectors.collector.kind import Pushed, Served
from orchestration.connectors.collector.sockets import BACKLOG, listener, place, server_context, warning
from orchestration.connectors.collector.spool import SpoolWriter
from orchestration.secrets import secret
from silver.spec import PayloadFormat

MAX_REQUESTS = 2000
GRACE_SECONDS = 10  # for requests that have begun when the collector is told to stop
SILENCE_SECONDS = 30.0  # the longest pause within a body
MAX_HELD_BYTES = 256 * 1024 * 1024  # the most bytes of all requests together, compressed and unpacked
INLINE_BYTES = 256 * 1024  # a longer body is read beside the event loop, which others wait for
MAX_READERS = 2  # the most such bodies at once: many tiny events take several times the memory of their body


async def serve(pushed: Pushed) -> Served:
    endpoint = pushed.endpoint
    assert isinstance(endpoint, HttpSettings)
    token, tls = endpoint.token and secret(endpoint.token), server_context(endpoint.tls)
    listening = listener(pushed.source.name, endpoint)
    config = uvicorn.Config(
        HttpCollector(endpoint, pushed.source.payload_format, token, pushed.spool).application(),
        http=BoundedHttpProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        limit_concurrency=MAX_REQUESTS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_context_factory=(lambda *_: tls) if tls else None,
    )
    server = _Server(config)
    url = f"POST http{'s' if tls else ''}://{place(listening)}/events"
    pushed.outage.up(f"{url}{warning(listening, token)}")
    serving = asyncio.create_task(server.serve([listening]))

    async def stop() -> None:
        server.should_exit = True
        await asyncio.wait([serving])

    return Served(serving, stop)


class _Server(uvicorn.Server):
    """Signals are the collector's: it may have several servers."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@dataclass
class HttpCollector:
    """The routes and their state. `shape`: of payloads. `token`: None for a source without one."""

    endpoint: HttpSettings
    shape: PayloadFormat
    token: str | None
    spool: SpoolWriter
    _held: int = 0
    _readers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_READERS))
    _requests: Iterator[int] = field(default_factory=lambda: count(1))

    def application(self) -> Starlette:
        return Starlette(routes=[Route("/events", self.events, methods=["POST"]), Route("/health", self.health, methods=["GET"])])

    async def events(self, request: Request) -> Response:
        try:
            return JSONResponse(await self._store(request), 202)
        except RefusedError as refused:
            return JSONResponse({"error": f"{refused}."}, refused.status, refused.headers)
        except ClientDisconnect:
            return Response(status_code=400)  # which nobody reads

    async def health(self, request: Request) -> Response:
        return JSONResponse({"is_full": self.spool.is_full(), "is_broken": self.spool.is_broken})

    async def _store(self, request: Request) -> dict[str, int]:
        self._check(request)
        with self._hold() as held:
            events, unreadable = await self._events(request, await self._body(request, held), held)
            if events:
                name = f"request/{self.spool.mark.hex()[:8]}-{next(self._requests)}"
                # A client that goes away ends its own waiting, not that of all others of the group.
                if await asyncio.shield(self.spool.store(name, 1, events)):
                    raise _broken()
            return {"accepted": len(events), **({"unreadable": unreadable} if unreadable else {})}

    def _check(self, request: Request) -> None:
        """All that the body is not needed for."""
        given = request.headers.get("authorization", "").encode("latin-1")
        if self.token is not None and not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
            raise RefusedError(401, "send the token: Authorization: Bearer TOKEN", WWW_Authenticate="Bearer")
        coding, length = request.headers.get("transfer-encoding"), request.headers.get("content-length")
        if coding is None and length is None:
            raise RefusedError(411, "send Content-Length, or Transfer-Encoding: chunked; nothing says how long the body is")
        if coding is not None and coding.strip().lower() != "chunked":
            raise RefusedError(501, f"the Transfer-Encoding {coding[:50]!r} is not known; send chunked", Connection="close")
        if length is not None and int(length) > self.endpoint.max_body_bytes:
            raise too_long(self.endpoint.max_body_bytes)
        if self.spool.is_broken:
            raise _broken()
        if self.spool.is_full():
            raise RefusedError(429, "the spool is full: events wait for `tidemark run`; send it again later", Retry_After="5")

    @contextmanager
    def _hold(self) -> Iterator[list[int]]:
        """Lengths of what a request keeps in memory; as long as it does."""
        held: list[int] = []
        try:
            yield held
        finally:
            self._held -= sum(held)

    def _keep(self, length: int, held: list[int]) -> None:
        if self._held + length > MAX_HELD_BYTES:
            raise RefusedError(503, "too many requests at once; send it again later", Retry_After="1")
        self._held += length
        held.append(length)

    async def _body(self, request: Request, held: list[int]) -> bytes:
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(SILENCE_SECONDS) as silence:
                async for part in request.stream():
                    self._keep(len(part), held)
                    if sum(held) > self.endpoint.max_body_bytes:
                        raise too_long(self.endpoint.max_body_bytes)
                    parts.append(part)
                    silence.reschedule(asyncio.get_running_loop().time() + SILENCE_SECONDS)
        except TimeoutError:
            raise RefusedError(408, f"nothing of the body came for {SILENCE_SECONDS:.0f} seconds", Connection="close") from None
        body = b"".join(parts)
        length = request.headers.get("content-length")
        if length is not None and len(body) != int(length):
            raise RefusedError(400, f"of {length} bytes of the body {len(body):,} came; send it again", Connection="close")
        return body

    async def _events(self, request: Request, body: bytes, held: list[int]) -> tuple[list[bytes], int]:
        encoding = ", ".join(request.headers.getlist("content-encoding")).strip().lower()
        if not encoding and len(body) <= INLINE_BYTES:
            return self._read(body, encoding, request)
        async with self._readers:
            events, unreadable = await asyncio.to_thread(self._read, body, encoding, request)
        if encoding:
            self._keep(sum(map(len, events)), held)
        return events, unreadable

    def _read(self, body: bytes, encoding: str, request: Request) -> tuple[list[bytes], int]:
        content = unpacked(body, encoding, self.endpoint.max_body_bytes)
        return payloads(content, request.headers.get("content-type", ""), self.shape)


def _broken() -> RefusedError:
    return RefusedError(503, "the disk takes no more: it is full or has failed; send it again later", Retry_After="2")
