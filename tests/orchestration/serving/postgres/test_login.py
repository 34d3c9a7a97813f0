"""Who enters the sql-server, and how: passwords, encryption, and what a client sets at once."""

import socket
import struct
from pathlib import Path

import psycopg
import pytest

from tests.certificates import self_signed
from tests.orchestration.serving.postgres.served import Served, serving


def startup(user: str, major: int = 3) -> bytes:
    body = struct.pack("!i", major << 16) + b"user\0" + user.encode() + b"\0\0"
    return struct.pack("!i", 4 + len(body)) + body


def sasl(message: str) -> bytes:
    body = b"SCRAM-SHA-256\0" + struct.pack("!i", len(message)) + message.encode()
    return b"p" + struct.pack("!i", 4 + len(body)) + body


def answers(server: Served, *messages: bytes) -> bytes:
    """The last answer to these messages, each of which waits for that to the one before."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        for message in messages:
            connection.sendall(message)
            answer = connection.recv(10_000)
    return answer


@pytest.mark.parametrize("user", ["ann", "nobody"])
def test_a_wrong_password_and_an_unknown_user_are_refused_alike(server: Served, user: str) -> None:
    with pytest.raises(psycopg.OperationalError, match=f'FATAL:  password authentication failed for user "{user}"'):
        psycopg.connect(**server.address() | {"user": user, "password": "wrong"})
    for message in ("p=tls-unique,,n=,r=abc", "n,,n=,r=", "n,,r=abc", "nonsense", "n,,n=,r=abc,m=1"):
        assert b"C28P01" in answers(server, startup(user), sasl(message))
    for flag in ("n", "y"):  # without channel binding, whatever the client thinks of the server
        assert b"r=abcdefgh" in answers(server, startup(user), sasl(f"{flag},,n=,r=abcdefgh"))


def test_a_newer_protocol_is_negotiated_down_and_what_is_none_is_refused(server: Served) -> None:
    with server.connect(max_protocol_version="latest") as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    assert b"unsupported frontend protocol 2.0" in answers(server, startup("ann", major=2))
    assert b"C08P01" in answers(server, b"GET / HTTP/1.1\r\n\r\n")


def test_a_client_sets_at_once_what_it_may_and_is_refused_otherwise(server: Served) -> None:
    with server.connect(options=r"-c statement_timeout=7s --search_path=gold,\ marts", application_name="chart") as connection:
        shown = [connection.execute(f"show {name}").fetchone() for name in ("statement_timeout", "search_path", "application_name")]
    assert shown == [("7s",), ("gold, marts",), ("chart",)]
    for mistake, sentence in ({"options": "-c tidemark.snapshot=99"}, "no snapshot"), ({"dbname": "gold"}, '"gold" does not exist'):
        with pytest.raises(psycopg.OperationalError, match=sentence):
            server.connect(**mistake)


def test_a_connection_is_encrypted_where_the_server_has_a_certificate(server: Served, tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    with (
        serving(tmp_path, "--cert", str(certificate), "--key", str(key)) as encrypted,
        encrypted.connect(host="localhost", sslmode="verify-full", sslrootcert=str(certificate)) as connection,
    ):
        assert connection.pgconn.ssl_in_use
        assert connection.execute("select 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="server does not support SSL"):
        server.connect(sslmode="require")
