"""Bytes between a client on the host and the server behind the fence, which have no network in common.

For each client the host makes a pair of connected sockets and hands one end into the fence, through a socket that was there from the start:
no path on a disk, no listening socket that others on this machine could find. Such an end can be connected to nothing else.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

from orchestration.errors import TidemarkError

CHUNK = 64 * 1024
LARGEST_CROWD = 200
"""Clients at a time; one more is turned away."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Greeting = Callable[[Streams, Streams], Awaitable[bool]]
"""What happens between a client and the server before anything else passes; False turns the client away."""


class HostSide:
    """Takes clients on a port of the host and hands each into the fence."""

    def __init__(self, door: socket.socket, greeting: Greeting) -> None:
        """`door`: the host's end of the socket into the fence."""
        door.setblocking(False)
        self._door = door
        self._greeting = greeting
        self._clients: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def open(self, port: socket.socket) -> AsyncIterator[None]:
        """Take clients for as long as the context lasts; then hang up on everybody."""
        server = await asyncio.start_server(self._take, sock=port)
        try:
            yield
        finally:
            server.close()
            clients = list(self._clients)
            for client in clients:
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)

    def has_clients(self) -> bool:
        """Whether anybody is here."""
        return bool(self._clients)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._clients) >= LARGEST_CROWD:
            writer.close()
            return
        self._clients.add(task)
        try:
            with contextlib.closing(writer), contextlib.suppress(OSError, TidemarkError):  # either may be gone at any time
                server = await self._handed_in()
                with contextlib.closing(server[1]):
                    if await self._greeting((reader, writer), server):
                        await joined((reader, writer), server)
        finally:
            self._clients.discard(task)

    async def _handed_in(self) -> Streams:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._door, [b"+"], [theirs.fileno()])
            except OSError:  # nobody takes them any more
                ours.close()
                raise
        return await asyncio.open_connection(sock=ours)


async def serve_inside(door: socket.socket, port: int) -> None:
    """The other side: whoever is handed in is connected to the server on `port` of this network; ends when the host is gone."""
    door.setblocking(False)
    clients = set[asyncio.Task[None]]()
    while True:
        await _readable(door)
        told, ends, _, _ = socket.recv_fds(door, 1, 1)
        if not told:
            await asyncio.gather(*clients, return_exceptions=True)
            return
        client = asyncio.create_task(_connected(socket.socket(fileno=ends[0]), port))
        clients.add(client)
        client.add_done_callback(clients.discard)


async def _readable(door: socket.socket) -> None:
    loop, is_readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(door, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(door)


async def _connected(end: socket.socket, port: int) -> None:
    client = await asyncio.open_connection(sock=end)
    with contextlib.closing(client[1]), contextlib.suppress(OSError):
        server = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.closing(server[1]):
            await joined(client, server)


async def joined(one: Streams, other: Streams) -> None:
    """What one says the other hears, until both have said all, or one of them is gone."""
    ways = [asyncio.create_task(_passed(one[0], other[1])), asyncio.create_task(_passed(other[0], one[1]))]
    try:
        await asyncio.gather(*ways)
    finally:
        for way in ways:
            way.cancel()


async def _passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK):
        writer.write(chunk)
        await writer.drain()
    writer.write_eof()
