"""Sessions of real clients, recorded and broken at random: the server lives, and nothing of them is left over.

`--seed` repeats the same sessions.
"""

import asyncio
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from typing import Any

import asyncpg
import psutil
import psycopg
import pytest

from tests.orchestration.serving.postgres.served import Served, serving
from tests.waiting import PATIENCE_SECONDS, until

QUERY = "select device_id, value, event_time, groups from silver.readings order by all"
COPY = "copy (select device_id, value from silver.readings) to stdout (format binary)"
STARTUP_BYTES, AT_ONCE = 8, 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("mutated")) as running:
        yield running


def by_psycopg(address: dict[str, Any]) -> None:
    with psycopg.connect(**address, autocommit=True) as connection:
        connection.execute(QUERY, binary=True)
        connection.execute(f"{QUERY} limit %s", (3,), prepare=True)
        with connection.transaction(), connection.cursor("few") as cursor:
            cursor.execute(QUERY).fetchmany(3)
        with connection.pipeline():
            connection.execute("select oid, relname from pg_class where relname = %s", ("readings",))
        with connection.cursor().copy(COPY) as copied:
            list(copied)


async def _by_asyncpg(address: dict[str, Any]) -> None:
    connection = await asyncpg.connect(**address, ssl=False)
    try:
        asked = "select * from silver.readings where device_id = $1 and value > $2::float8 and groups = $3::text[]"
        await connection.fetch(asked, "oven", 1.5, ["kitchen"])
        async with connection.transaction():
            assert [row async for row in connection.cursor(QUERY, prefetch=3)]
    finally:
        await connection.close()


def by_asyncpg(address: dict[str, Any]) -> None:
    asyncio.run(_by_asyncpg(address))


def recorded(server: Served, session: Callable[[dict[str, Any]], None]) -> bytes:
    """All bytes that a client sends in a session."""
    sent = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as relay:
        client = threading.Thread(target=session, args=({**server.address(), "port": relay.getsockname()[1]},))
        client.start()
        near, _ = relay.accept()
        with near, socket.create_connection(("127.0.0.1", server.port)) as far:
            answers = threading.Thread(target=_forward, args=(far, near, bytearray()))
            answers.start()
            _forward(near, far, sent)
            answers.join()
        client.join()
    return bytes(sent)


def _forward(start: socket.socket, end: socket.socket, copy: bytearray) -> None:
    with suppress(OSError):
        while received := start.recv(1 << 16):
            copy += received
            end.sendall(received)
        end.shutdown(socket.SHUT_WR)


def split(session: bytes) -> tuple[list[bytes], list[bytes]]:
    """Messages until the password is known, and those after it."""
    messages, at, is_started = list[bytes](), 0, False
    while at < len(session):
        (length,) = struct.unpack_from("!i", session, at + is_started)
        messages.append(session[at : at + is_started + length])
        is_started = is_started or length > STARTUP_BYTES  # a request for TLS has 8 bytes, the next message no kind either
        at += len(messages[-1])
    logins = sum(message[:1] == b"p" or message[:1] == b"\0" for message in messages)
    return messages[:logins], messages[logins:]


def mutated(messages: Sequence[bytes], random: Random) -> bytes:
    """A session with one to three faults: other bytes, other lengths, messages that are cut, gone, twice or in another order."""
    changed = list(messages)
    for _ in range(random.randint(1, 3)):
        place, other = (random.randrange(len(changed)) for _ in range(2))
        message, cut = bytearray(changed[place]), random.randrange(len(changed[place]) or 1)
        match random.choice(["flip", "length", "cut", "noise", "drop", "repeat", "swap"]):
            case "flip":
                message[cut : cut + 1] = random.randbytes(1)
            case "length":
                message[1:5] = struct.pack("!i", random.choice([-1, 0, 3, 4, 5, 1 << 20, 2**31 - 1, random.randrange(2**16)]))
            case "cut":
                del message[cut : cut + random.randint(1, 8)]
            case "noise":
                message[cut:cut] = random.randbytes(random.randint(1, 40))
            case "drop":
                message = bytearray()
            case "repeat":
                message *= random.randint(2, 20)
            case _:
                changed[other], message = bytes(message), bytearray(changed[other])
        changed[place] = bytes(message)
    return b"".join(changed)


def play(connection: socket.socket, sent: bytes) -> None:
    """Send all, and read until the server has ended the session."""
    connection.settimeout(PATIENCE_SECONDS)
    with connection, suppress(ConnectionError):
        sender = threading.Thread(target=_send, args=(connection, sent))
        sender.start()
        while connection.recv(1 << 16):
            pass
        sender.join()


def _send(connection: socket.socket, sent: bytes) -> None:
    with suppress(OSError):
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)


def break_one(server: Served, sessions: Sequence[tuple[list[bytes], list[bytes]]], random: Random, is_known: bool) -> None:
    """Play a broken session, from its first message on or from the password on."""
    sent = mutated(random.choice(sessions)[is_known], random)
    if not is_known:
        play(socket.create_connection(("127.0.0.1", server.port)), sent)
        return
    with server.connect() as connection:
        play(socket.socket(fileno=os.dup(connection.pgconn.socket)), sent)


@pytest.mark.parametrize("is_known", [False, True], ids=["before the password", "after the password"])
@pytest.mark.parametrize("count", [25, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_server_lives_after_broken_sessions_and_keeps_nothing_of_them(
    server: Served, count: int, is_known: bool, seed: int | None
) -> None:
    chosen = seed if seed is not None else Random().randrange(1 << 30)
    print(f"--seed {chosen}")
    sessions = [split(recorded(server, session)) for session in (by_psycopg, by_asyncpg)]
    assert server.process is not None
    process = psutil.Process(server.process.pid)
    until(lambda: not server.workers())
    files = process.num_fds()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(lambda n: break_one(server, sessions, Random(chosen + n), is_known), range(count)))
    with server.connect() as connection:
        assert connection.execute("select count(*) from silver.readings").fetchone() == (8,)
    until(lambda: not process.children(recursive=True))
    assert process.num_fds() == files
    assert "Traceback" not in server.log.read_text()
