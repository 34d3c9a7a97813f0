"""`tidemark collect`: takes the events of sources that are pushed, and acknowledges what is on the disk."""

import asyncio
import gc
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import uvicorn
import uvloop

from orchestration.conf.model import Conf, Source
from orchestration.conf.secrets import secret
from orchestration.conf.transports import Collected, HttpEndpoint, TcpEndpoint, Tls
from orchestration.connectors.collector.http_protocol import BoundedHttpProtocol
from orchestration.connectors.collector.spool import SpoolWriter
from orchestration.connectors.collector.tcp import Connection, TcpCollector
from orchestration.connectors.collector.web import HttpCollector
from orchestration.connectors.sources.spool import SEGMENT
from orchestration.errors import ConfError, TidemarkError
from orchestration.storage.retired_sources import spool_folder
from orchestration.storage.source_offsets import source_offsets
from orchestration.storage.tables import LakeStore

BACKLOG, MAX_REQUESTS = 2048, 2000
GRACE_SECONDS = 10
"""For requests that have begun when the collector is told to stop."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
Notify = Callable[[str], None]


class Pushed(NamedTuple):
    """A source with what serves it. `secret`: None for one without."""

    source: Source
    endpoint: Collected
    spool: SpoolWriter
    secret: str | None


class Served(NamedTuple):
    """What runs for a source, and how it is ended well."""

    task: "asyncio.Task[None]"
    stop: Callable[[], Awaitable[None]]


def collect(conf: Conf, names: Sequence[str], notify: Notify) -> None:
    """Listen for the named sources, or for all that are pushed, until SIGTERM or Ctrl-C; HeldError where another process does."""
    known = source_offsets(LakeStore(conf).table_path("bronze.events"))
    with ExitStack() as spools:
        chosen = []
        for name in _names(conf, names):
            source, offset = conf.sources[name], known[name].offset if name in known else {}
            endpoint = source.transport
            assert isinstance(endpoint, Collected)
            reference = endpoint.token if isinstance(endpoint, HttpEndpoint) else endpoint.key
            found = None if reference is None else secret(conf.folder, reference)
            spool = SpoolWriter(spool_folder(conf.lake, name).local, endpoint.max_spool_bytes, int(offset.get(SEGMENT, -1)) + 1)
            spools.callback(spool.close)
            chosen.append(Pushed(source, endpoint, spool, found))
        gc.freeze()  # or a full collection walks over all that was imported, and everybody waits for it
        uvloop.run(_serve(chosen, notify))


def _names(conf: Conf, names: Sequence[str]) -> list[str]:
    pushed = [name for name, source in conf.sources.items() if isinstance(source.transport, Collected)]
    if odd := sorted(set(names) - set(pushed)):
        raise ConfError(f"{odd[0]} is no source with http or tcp; sources.yml has " + (", ".join(pushed) or "none"))
    if not pushed:
        raise ConfError("sources.yml has no source with http or tcp; there is nothing to collect")
    return list(dict.fromkeys(names)) or pushed


async def _serve(chosen: Sequence[Pushed], notify: Notify) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.set_exception_handler(lambda _, context: notify(f"a connection failed: {context.get('exception') or context['message']}"))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    stopping, served = asyncio.create_task(stop.wait()), list[Served]()
    try:
        for pushed in chosen:
            with _listener(pushed) as listener:
                tls = _context(pushed.endpoint.tls) if pushed.endpoint.tls else None
                start = _serve_http if isinstance(pushed.endpoint, HttpEndpoint) else _serve_tcp
                served.append(await start(pushed, listener.dup(), tls, notify))
                notify(_address(pushed, listener))
        done, _ = await asyncio.wait([stopping, *(one.task for one in served)], return_when=asyncio.FIRST_COMPLETED)
        for ended in done:
            ended.result()  # of a server that has failed: it ends all of them
    finally:
        for one in served:
            await one.stop()


async def _serve_http(pushed: Pushed, listener: socket.socket, tls: ssl.SSLContext | None, _: Notify) -> Served:
    assert isinstance(pushed.endpoint, HttpEndpoint)
    application = HttpCollector(pushed.endpoint, pushed.source.payload_format.format, pushed.secret, pushed.spool).application()
    config = uvicorn.Config(
        application,
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
    serving = asyncio.create_task(server.serve([listener]))

    async def stop() -> None:
        server.should_exit = True
        await asyncio.wait([serving])

    return Served(serving, stop)


async def _serve_tcp(pushed: Pushed, listener: socket.socket, tls: ssl.SSLContext | None, notify: Notify) -> Served:
    assert isinstance(pushed.endpoint, TcpEndpoint)
    key = None if pushed.secret is None else pushed.secret.encode()
    collector = TcpCollector(pushed.endpoint, key, pushed.spool, notify)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(collector), sock=listener, backlog=BACKLOG, ssl=tls)
    watching = asyncio.create_task(collector.watch())

    async def stop() -> None:
        server.close()
        await collector.stop()
        watching.cancel()
        await asyncio.sleep(0.05)  # what was written to connections leaves

    return Served(watching, stop)


class _Server(uvicorn.Server):
    """Signals are the collector's: it may have several servers."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None."""
        yield


def _listener(pushed: Pushed) -> socket.socket:
    host, port = pushed.endpoint.host, pushed.endpoint.port
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG)
    except OSError as error:
        where = f"source {pushed.source.name} cannot listen on {host}, port {port}"
        raise TidemarkError(f"{where}: {error.strerror}; choose another one in sources.yml.") from error


def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except OSError as error:
        remedy = "name a certificate and its key, both in PEM"
        raise TidemarkError(f"{tls.certificate} and {tls.key} cannot be used for TLS ({error.strerror or error}); {remedy}.") from error
    return context


def _address(pushed: Pushed, listener: socket.socket) -> str:
    endpoint, (host, port) = pushed.endpoint, listener.getsockname()[:2]
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if isinstance(endpoint, HttpEndpoint):
        where = f"POST http{'s' if endpoint.tls else ''}://{place}/events"
    else:
        where = f"tcp://{place}{' with TLS' if endpoint.tls else ''}, framing by {endpoint.framing}"
    is_open = host not in LOOPBACK and pushed.secret is None
    return f"source {pushed.source.name}: {where}" + ("; WITHOUT A SECRET: whoever reaches this port can send events" if is_open else "")
