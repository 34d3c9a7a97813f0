"""The handshake of JDBC clients, frame by frame; test_servers.py has real clients."""

import asyncio
import struct

import pytest

from orchestration.serving.bi import password
from orchestration.serving.bi.password import BAD, COMPLETE, MAX_FRAME_BYTES, OK, START, password_handshake

WORD = "open sesame"


def frame(status: int, payload: bytes) -> bytes:
    return struct.pack("!BI", status, len(payload)) + payload


def credentials(user: str = "me", word: str = WORD) -> bytes:
    return f"\0{user}\0{word}".encode()


def shake_hands(said: bytes, hangs_up: bool = True) -> tuple[bool, bytes, bytes]:
    """Whether a client that sends these bytes is accepted; what it and what the server receive."""

    async def run() -> tuple[bool, bytes, bytes]:
        heard: dict[str, bytes] = {}

        async def listen(name: str, reader: asyncio.StreamReader) -> None:
            heard[name] = await reader.read()

        async def pair() -> tuple[tuple[asyncio.StreamReader, asyncio.StreamWriter], tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
            import socket

            one, other = socket.socketpair()
            return await asyncio.open_connection(sock=one), await asyncio.open_connection(sock=other)

        (client, to_client), (server, to_server) = await pair(), await pair()
        client[1].write(said)
        if hangs_up:
            client[1].write_eof()
        is_in = await password_handshake(WORD)(to_client, to_server)
        for _, writer in (to_client, to_server):
            writer.close()
        await asyncio.gather(listen("client", client[0]), listen("server", server[0]))
        for _, writer in (client, server):
            writer.close()
        return is_in, heard["client"], heard["server"]

    return asyncio.run(run())


def test_the_server_gets_the_user_and_no_password() -> None:
    expected = frame(START, b"PLAIN") + frame(COMPLETE, b"\0me\0-")
    for status in (OK, COMPLETE):
        assert shake_hands(frame(START, b"PLAIN") + frame(status, credentials())) == (True, b"", expected)
    assert shake_hands(frame(START, b"PLAIN") + frame(COMPLETE, credentials(user="")))[2].endswith(b"\0nobody\0-")


@pytest.mark.parametrize(
    "said",
    [
        frame(START, b"PLAIN") + frame(COMPLETE, credentials(word="open")),
        frame(START, b"PLAIN") + frame(COMPLETE, credentials(word="")),
        frame(START, b"PLAIN") + frame(COMPLETE, credentials(word=f"{WORD}\0{WORD}")),
        frame(START, b"PLAIN") + frame(COMPLETE, WORD.encode()),
        frame(START, b"PLAIN") + frame(BAD, credentials()),
        frame(START, b"PLAIN") + frame(COMPLETE, b"\xff" * 10),
        frame(START, b"PLAIN") + struct.pack("!BI", COMPLETE, MAX_FRAME_BYTES + 1) + b"x" * (MAX_FRAME_BYTES + 1),
        frame(START, b"GSSAPI") + frame(COMPLETE, credentials()),
        frame(OK, b"PLAIN") + frame(COMPLETE, credentials()),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x80\x01\x00\x01\x00\x00\x00\x0bOpenSession\x00\x00\x00\x01",  # Thrift without a handshake
    ],
)
def test_other_bytes_are_refused_and_the_server_receives_nothing(said: bytes) -> None:
    is_in, client, server = shake_hands(said)
    assert (is_in, server) == (False, b"")
    assert client[:1] in (bytes([BAD]), b"")


def test_a_client_that_hangs_up_or_is_too_slow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = frame(START, b"PLAIN") + frame(COMPLETE, credentials())
    assert {shake_hands(whole[:length])[::2] for length in range(len(whole))} == {(False, b"")}
    monkeypatch.setattr(password, "TIMEOUT_SECONDS", 0.05)
    assert shake_hands(whole[:-1], hangs_up=False) == (False, b"", b"")
