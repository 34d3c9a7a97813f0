"""The relay: a server on a port that only the inner side knows, clients on a port of the host."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from orchestration.serving.bi import relay
from orchestration.serving.bi.relay import HostRelay, Streams, relay_inside

LARGE = bytes(range(256)) * 20_000


async def accepted(client: Streams, server: Streams) -> bool:
    return True


async def refused(client: Streams, server: Streams) -> bool:
    return False


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says everything back when all is said."""
    writer.write(await reader.read())
    writer.close()


def through(
    work: Callable[[int], Awaitable[None]], handshake: relay.Handshake = accepted, server: Callable[..., Awaitable[None]] = echo
) -> None:
    """Work with the port of the host; the server is reached by nothing but the relay."""

    async def run() -> None:
        ours, theirs = socket.socketpair()
        port = socket.create_server(("127.0.0.1", 0))
        inner = await asyncio.start_server(server, "127.0.0.1", 0)
        serving = asyncio.create_task(relay_inside(theirs, inner.sockets[0].getsockname()[1]))
        host = HostRelay(ours, handshake)
        with ours, theirs:
            async with host.open(port):
                await work(port.getsockname()[1])
            ours.close()
            await serving
        inner.close()

    asyncio.run(run())


async def said_back(port: int, said: bytes) -> bytes:
    """What the server answers; nothing where it hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(said)
        writer.write_eof()
        return await reader.read()
    except OSError:
        return b""
    finally:
        writer.close()


def test_what_a_client_says_comes_back_whole_for_each_of_many() -> None:
    async def work(port: int) -> None:
        said = [b"%d " % number + LARGE for number in range(20)]
        assert await asyncio.gather(*(said_back(port, text) for text in said)) == said
        assert await said_back(port, b"") == b""

    through(work)


def test_a_refused_client_reaches_no_server() -> None:
    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == b""
        writer.close()

    async def work(port: int) -> None:
        assert await said_back(port, b"hello") == b""

    through(work, refused, server)


def test_a_client_above_the_limit_is_refused_until_another_one_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "MAX_CLIENTS", 2)

    async def work(port: int) -> None:
        waiting = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        assert await said_back(port, b"hello") == b""
        for _, writer in waiting:
            writer.close()
        while not await said_back(port, b"hello"):
            await asyncio.sleep(0.01)

    through(work)


def test_whoever_hangs_up_in_the_middle_harms_nobody_else() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if await reader.read(1) == b"?":
                while True:
                    writer.write(LARGE)
                    await writer.drain()
            writer.write(b"!")
        except OSError:
            pass
        finally:
            writer.close()

    async def work(port: int) -> None:
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"?")
            await reader.readexactly(10)
            writer.transport.abort()
        assert await said_back(port, b".") == b"!"

    through(work, server=endless)


def test_without_a_server_a_client_hears_the_end() -> None:
    async def work(port: int) -> None:
        ours, theirs = socket.socketpair()
        theirs.close()
        other = socket.create_server(("127.0.0.1", 0))
        async with HostRelay(ours, accepted).open(other):
            assert await said_back(other.getsockname()[1], b"hello") == b""
        ours.close()

    through(work)
