"""Check a password by SCRAM-SHA-256, without channel binding: the password itself is never sent."""

import secrets
import struct
from collections.abc import Mapping
from typing import Any

from scramp import ScramException, ScramMechanism

from orchestration.serving.postgres.wire import Fields, PostgresError, ProtocolError, Wire, text

MECHANISM = "SCRAM-SHA-256"
REQUEST, CONTINUE, FINAL = (struct.pack("!i", step) for step in (10, 11, 12))


def check_password(wire: Wire, users: Mapping[str, str], user: str) -> None:
    """Return if the client knows the password of the user; PostgresError otherwise, the same and as late for a user who is not there."""
    mechanism = ScramMechanism(MECHANISM)
    account = mechanism.make_auth_info(users.get(user, secrets.token_hex()))
    server = mechanism.make_server(lambda _: account)
    try:
        wire.write("R", REQUEST, text(MECHANISM), b"\0")
        fields = Fields(_answer(wire))
        chosen, length = fields.text(), fields.number("!i")
        if chosen != MECHANISM:
            raise ScramException(f"the client wants {chosen}")
        _set_first(server, fields.take(length).decode())
        wire.write("R", CONTINUE, server.get_server_first().encode())
        server.set_client_final(_answer(wire).decode())
    except (ScramException, ProtocolError, ValueError):
        raise PostgresError("28P01", f'password authentication failed for user "{user}"') from None
    wire.write("R", FINAL, server.get_server_final().encode())


def _answer(wire: Wire) -> bytes:
    kind, body = wire.read()
    if kind != "p":
        raise ProtocolError(f"a message of the kind {kind!r} instead of a password")
    return body


def _set_first(server: Any, message: str) -> None:
    """libpq leaves the name empty, as the startup message has it; scramp wants one, though the signature is over what was sent."""
    server.set_client_first(message.replace(",n=,", ",n=*,", 1))
    server.client_first_bare = message.split(",", 2)[2]
