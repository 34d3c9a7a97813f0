"""HTTP as a kind of collected source: uvicorn, with our protocol and our signals."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from orchestration.conf.secrets import secret
from orchestration.conf.transport_settings import HttpSettings
from orchestration.connectors.collector.http_protocol import BoundedHttpProtocol
from orchestration.connectors.collector.kind import Notify, Pushed, Served
from orchestration.connectors.collector.listener import BACKLOG, listener, place, warning
from orchestration.connectors.collector.tls import server_context
from orchestration.connectors.collector.web import HttpCollector

MAX_REQUESTS = 2000
GRACE_SECONDS = 10
"""For requests that have begun when the collector is told to stop."""


async def serve(pushed: Pushed, notify: Notify) -> Served:
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
    notify(f"source {pushed.source.name}: {url}{warning(listening, token)}")
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
