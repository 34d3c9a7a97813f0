"""The token that clients must know, in a file that only its owner can read, and its check as a password of JDBC and ODBC clients.

The host checks it, before a byte of the client reaches the server. Hive's SASL PLAIN handshake: frames of a status byte, a length of four
bytes and a payload. The first frame names the mechanism; the second holds authorization, user and password, separated by zero bytes. The
sandboxed server accepts anybody; it gets the user, never the password.
"""

import asyncio
import hmac
import os
import secrets
import struct
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.serving.bi.relay import Handshake, Streams
from orchestration.serving.sql.client import address_file

START, OK, BAD, COMPLETE = 1, 2, 3, 5
MAX_FRAME_BYTES = 4096
TIMEOUT_SECONDS = 10.0
PLACEHOLDER_PASSWORD = b"-"
"""Hive's server requires a password, whatever it is."""


def default_token_file(lake: Location) -> Path:
    """One for each lake and user, outside of the lake. It survives restarts, so clients keep their token."""
    return address_file(lake).with_suffix(".token")


def load_token(file: Path) -> str:
    """The token in the file; a new one if the file does not exist. TidemarkError if others can read the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        with NamedTemporaryFile("w", dir=file.parent) as draft:  # only its owner can read it
            draft.write(secrets.token_urlsafe(24) + "\n")
            draft.flush()
            with suppress(FileExistsError):  # two servers may start at once; the file appears with its token in it
                os.link(draft.name, file)
    return _read_token(file)


def _read_token(file: Path) -> str:
    status = file.stat()
    if status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise TidemarkError(f"other users can read {file}: restrict it with `chmod 600 {file}`, or delete it to get a new token.")
    token = file.read_text().strip()
    if not token.isprintable() or not token.isascii() or " " in token or not token:
        raise TidemarkError(f"{file} holds no valid token (printable ASCII without spaces): delete it to get a new one.")
    return token


def password_handshake(password: str) -> Handshake:
    """Accept clients with this password, whatever user they name."""

    async def handshake(client: Streams, server: Streams) -> bool:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                user = await _user(client[0], password)
        except (TimeoutError, asyncio.IncompleteReadError):
            return False
        if user is None:
            client[1].write(_frame(BAD, b"Tidemark does not know this password; user: any name, authentication: user and password."))
            await client[1].drain()
            return False
        server[1].write(_frame(START, b"PLAIN") + _frame(COMPLETE, b"\0".join([b"", user, PLACEHOLDER_PASSWORD])))
        return True

    return handshake


async def _user(reader: asyncio.StreamReader, password: str) -> bytes | None:
    """The name of the user if the password is right, else None."""
    status, mechanism = await _read_frame(reader)
    if (status, mechanism) != (START, b"PLAIN"):
        return None
    status, credentials = await _read_frame(reader)
    parts = credentials.split(b"\0")
    if status not in (OK, COMPLETE) or len(parts) != 3:
        return None
    _, user, received = parts
    return (user or b"nobody") if hmac.compare_digest(received, password.encode()) else None


async def _read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and payload. A frame above the limit has an empty payload, which no step accepts."""
    status, length = struct.unpack("!BI", await reader.readexactly(5))
    return status, (await reader.readexactly(length) if length <= MAX_FRAME_BYTES else b"")


def _frame(status: int, payload: bytes) -> bytes:
    return struct.pack("!BI", status, len(payload)) + payload
