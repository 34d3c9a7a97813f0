"""Connects clients on the host with the server in the sandbox, which has a network of its own.

For each client the host creates a pair of connected sockets and passes one end into the sandbox through the control socket, which exists
from the start. So there is no path on a disk and no listening socket that others on the machine could find.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

from orchestration.errors import TidemarkError

CHUNK = 64 * 1024
MAX_CLIENTS = 200
"""Clients at a time; further ones are refused."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Handshake = Callable[[Streams, Streams], Awaitable[bool]]
"""Runs with the streams of a client and the server before any other byte passes; False refuses the client."""


class HostRelay:
    """Accepts clients on a port of the host and passes each into the sandbox."""

    def __init__(self, control_socket: socket.socket, handshake: Handshake) -> None:
        """`control_socket`: the host's end of the socket into the sandbox."""
        control_socket.setblocking(False)
        self._control_socket = control_socket
        self._handshake = handshake
        self._clients: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def open(self, port: socket.socket) -> AsyncIterator[None]:
        """Accept clients while the context lasts; then disconnect all of them."""
        server = await asyncio.start_server(self._accept, sock=port)
        try:
            yield
        finally:
            server.close()
            clients = list(self._clients)
            for client in clients:
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)

    def has_clients(self) -> bool:
        return bool(self._clients)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._clients) >= MAX_CLIENTS:
            writer.close()
            return
        self._clients.add(task)
        try:
            with contextlib.closing(writer), contextlib.suppress(OSError, TidemarkError):  # either side may disconnect at any time
                server = await self._connect_inside()
                with contextlib.closing(server[1]):
                    if await self._handshake((reader, writer), server):
                        await _forward((reader, writer), server)
        finally:
            self._clients.discard(task)

    async def _connect_inside(self) -> Streams:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control_socket, [b"+"], [theirs.fileno()])
            except OSError:  # the other side is gone
                ours.close()
                raise
        return await asyncio.open_connection(sock=ours)


async def relay_inside(control_socket: socket.socket, port: int) -> None:
    """The side in the sandbox: connect each client that arrives with the server on `port`. Returns when the host is gone."""
    control_socket.setblocking(False)
    clients = set[asyncio.Task[None]]()
    while True:
        await _readable(control_socket)
        message, descriptors, _, _ = socket.recv_fds(control_socket, 1, 1)
        if not message:
            await asyncio.gather(*clients, return_exceptions=True)
            return
        client = asyncio.create_task(_connect(socket.socket(fileno=descriptors[0]), port))
        clients.add(client)
        client.add_done_callback(clients.discard)


async def _readable(control_socket: socket.socket) -> None:
    loop, is_readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(control_socket, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(control_socket)


async def _connect(client_socket: socket.socket, port: int) -> None:
    client = await asyncio.open_connection(sock=client_socket)
    with contextlib.closing(client[1]), contextlib.suppress(OSError):
        server = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.closing(server[1]):
            await _forward(client, server)


async def _forward(one: Streams, other: Streams) -> None:
    """Copy bytes in both directions, until both have ended or one has failed."""
    directions = [asyncio.create_task(_copy(one[0], other[1])), asyncio.create_task(_copy(other[0], one[1]))]
    try:
        await asyncio.gather(*directions)
    finally:
        for direction in directions:
            direction.cancel()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK):
        writer.write(chunk)
        await writer.drain()
    writer.write_eof()
