"""Connections that send one event a frame, and get numbers back: so many of their events are on the disk."""

import asyncio
import hmac
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import cast

from orchestration.conf.transport_settings import TcpSettings
from orchestration.connectors.collector.kind import Notify, Pushed, Served
from orchestration.connectors.collector.sockets import BACKLOG, listener, place, server_context, warning
from orchestration.connectors.collector.spool import SpoolWriter, Stored
from orchestration.secrets import secret

LENGTH = struct.Struct(">I")
LOOK_SECONDS = 0.02  # between two looks whether connections that had to wait can be read again


async def serve(pushed: Pushed) -> Served:
    endpoint = pushed.endpoint
    assert isinstance(endpoint, TcpSettings)
    key, tls = endpoint.key and secret(endpoint.key), server_context(endpoint.tls)
    listening = listener(pushed.source.name, endpoint)
    collector = TcpCollector(endpoint, None if key is None else key.encode(), pushed.spool, pushed.notify)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(collector), sock=listening, backlog=BACKLOG, ssl=tls)
    url = f"tcp://{place(listening)}{' with TLS' if tls else ''}, framing by {endpoint.framing}"
    pushed.outage.up(f"{url}{warning(listening, key)}")
    watching = asyncio.create_task(collector.watch())

    async def stop() -> None:
        server.close()
        await collector.stop()
        watching.cancel()
        await asyncio.sleep(0.05)  # what was written to connections leaves

    return Served(watching, stop)


class FrameError(Exception):
    """Why a connection is closed."""


@dataclass
class TcpCollector:
    """The connections of a source. `key`: None for a source without one. `notify` hears why one was closed."""

    endpoint: TcpSettings
    key: bytes | None
    spool: SpoolWriter
    notify: Notify
    connections: "set[Connection]" = field(default_factory=set)
    waiting: "set[Connection]" = field(default_factory=set)  # connections that are not read, because there is no room for their events
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    is_stopping: bool = False

    def has_room(self) -> bool:
        """Whether connections are read; else their senders wait."""
        return not self.is_stopping and self.spool.has_room()

    async def watch(self) -> None:
        """Read again what had to wait, and close what is idle; until it is cancelled."""
        loop = asyncio.get_running_loop()
        idle_seconds = self.endpoint.idle_seconds
        next_look = 0.0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self.waiting and self.has_room():
                for connection in tuple(self.waiting):
                    connection.go_on()
            if loop.time() > next_look:
                next_look = loop.time() + idle_seconds / 4
                for connection in self.connections - self.waiting:
                    if connection.heard_at < loop.time() - idle_seconds:
                        connection.refuse(f"it sent nothing for {idle_seconds:g} seconds")

    async def stop(self) -> None:
        """Acknowledge what was read, and close all connections."""
        self.is_stopping = True
        for connection in self.connections:
            connection.wait()
        await self.spool.drain()
        await asyncio.sleep(0)  # what the end of the last group calls acknowledges it
        for connection in tuple(self.connections):
            connection.transport.close()


class Connection(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, server: TcpCollector) -> None:
        self._server, self._rest, self._need = server, bytearray(), LENGTH.size
        self._split = self._lines if server.endpoint.framing == "lines" else self._frames
        self._is_trusted = server.key is None
        self._name = f"connection/{server.spool.mark.hex()[:8]}-{next(server.numbers)}"
        self._count = 0
        self._stored: deque[tuple[Stored, int]] = deque()
        self._is_at_end = False
        self.heard_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read, or closed where there are enough."""
        self.transport, self.heard_at = cast(asyncio.Transport, transport), asyncio.get_running_loop().time()
        self._server.connections.add(self)
        if len(self._server.connections) > self._server.endpoint.max_connections:
            self.refuse(f"there are {self._server.endpoint.max_connections:,} connections already")
        elif not self._server.has_room():
            self.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection. Stored events stay; the beginning of a frame is dropped."""
        self._server.connections.discard(self)
        self._server.waiting.discard(self)

    def data_received(self, data: bytes) -> None:
        self.heard_at = asyncio.get_running_loop().time()
        if self.transport.is_closing():
            return
        try:
            events = self._trusted(self._split(data))
        except FrameError as error:
            self.refuse(str(error))
            return
        if events:
            self._store(events)
        if not self._server.has_room():
            self.wait()

    def eof_received(self) -> bool:
        """A sender that is done may still read what is acknowledged."""
        self._is_at_end = True
        return bool(self._stored) and self.transport.get_extra_info("sslcontext") is None

    def pause_writing(self) -> None:
        """A sender that does not read its acknowledgements is not read either, and is idle in the end."""
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        if self not in self._server.waiting:
            self.transport.resume_reading()

    def wait(self) -> None:
        if not self.transport.is_closing():
            self._server.waiting.add(self)
            self.transport.pause_reading()

    def go_on(self) -> None:
        self._server.waiting.discard(self)
        self.heard_at = asyncio.get_running_loop().time()
        self.transport.resume_reading()

    def refuse(self, reason: str) -> None:
        if self.transport.is_closing():
            self.transport.abort()  # it does not even take what is left for it
        else:
            self._server.notify(f"{self._name} from {self.transport.get_extra_info('peername')} is closed: {reason}")
            self.transport.close()

    def _store(self, events: list[bytes]) -> None:
        stored = self._server.spool.store(self._name, self._count + 1, events)
        self._count += len(events)
        if self._stored and self._stored[-1][0] is stored:
            self._stored[-1] = stored, self._count
        else:
            self._stored.append((stored, self._count))
            stored.add_done_callback(self._settle)

    def _settle(self, stored: Stored) -> None:
        _, number = self._stored.popleft()
        if self.transport.is_closing():
            return
        if stored.result() is not None:
            self.refuse("the disk takes no more: it is full or has failed")
            return
        if self._server.endpoint.acknowledge:
            self.transport.write(b"%d\n" % number)
        if self._is_at_end and not self._stored:
            self.transport.close()

    def _trusted(self, events: list[bytes]) -> list[bytes]:
        if self._is_trusted or not events:
            return events
        key, *events = events
        if not hmac.compare_digest(key.rstrip(b"\r"), self._server.key or b""):
            raise FrameError("its first frame is not the key")
        self._is_trusted = True
        return events

    def _lines(self, data: bytes) -> list[bytes]:
        if b"\n" not in data:
            self._rest += data
            self._check(len(self._rest))
            return []
        content = bytes(self._rest) + data
        *events, rest = content.split(b"\n")
        if len(content) > self._server.endpoint.max_frame_bytes:
            self._check(max(len(rest), *map(len, events)))
        self._rest = bytearray(rest)
        return events

    def _frames(self, data: bytes) -> list[bytes]:
        self._rest += data
        if len(self._rest) < self._need:
            return []
        content, at, events = bytes(self._rest), 0, []
        while True:
            begin = at + LENGTH.size
            self._need = LENGTH.size if begin > len(content) else LENGTH.size + LENGTH.unpack_from(content, at)[0]
            self._check(self._need - LENGTH.size)
            if at + self._need > len(content) or begin > len(content):
                break
            events.append(content[begin : at + self._need])
            at += self._need
        self._rest = bytearray(content[at:])
        return events

    def _check(self, length: int) -> None:
        if length > self._server.endpoint.max_frame_bytes:
            raise FrameError(f"an event is longer than {self._server.endpoint.max_frame_bytes:,} bytes (max_frame_bytes)")
