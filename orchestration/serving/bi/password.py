"""The greeting of a JDBC or ODBC client, which carries its user and password: looked at on the host, before a byte reaches the server.

This is Hive's form of SASL PLAIN: frames of a status byte, a length of four bytes and a payload; first the name of the mechanism, then
authorization, user and password with zero bytes between. The server behind the fence takes anybody; it is told the user, and no password.
"""

import asyncio
import hmac
import struct

from orchestration.serving.bi.relay import Greeting, Streams

START, OK, BAD, COMPLETE = 1, 2, 3, 5
LONGEST = 4096
"""Bytes of a frame; nobody's name or password is longer."""
SECONDS = 10.0
"""How long a client may take over its greeting."""
NO_PASSWORD = b"-"
"""The server insists on one."""


def by_password(password: str) -> Greeting:
    """Lets clients in that say this password, whatever user they name."""

    async def greeted(client: Streams, server: Streams) -> bool:
        try:
            async with asyncio.timeout(SECONDS):
                user = await _user(client[0], password)
        except (TimeoutError, asyncio.IncompleteReadError):
            return False
        if user is None:
            client[1].write(_frame(BAD, b"Tidemark does not know this password; user: any name, authentication: user and password."))
            await client[1].drain()
            return False
        server[1].write(_frame(START, b"PLAIN") + _frame(COMPLETE, b"\0".join([b"", user, NO_PASSWORD])))
        return True

    return greeted


async def _user(reader: asyncio.StreamReader, password: str) -> bytes | None:
    """The user whose password is right; else None."""
    status, mechanism = await _next(reader)
    if (status, mechanism) != (START, b"PLAIN"):
        return None
    status, credentials = await _next(reader)
    parts = credentials.split(b"\0")
    if status not in (OK, COMPLETE) or len(parts) != 3:
        return None
    _, user, said = parts
    return (user or b"nobody") if hmac.compare_digest(said, password.encode()) else None


async def _next(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """A frame; one that is too long is an empty one, which nothing is the right answer to."""
    status, length = struct.unpack("!BI", await reader.readexactly(5))
    return status, (await reader.readexactly(length) if length <= LONGEST else b"")


def _frame(status: int, payload: bytes) -> bytes:
    return struct.pack("!BI", status, len(payload)) + payload
