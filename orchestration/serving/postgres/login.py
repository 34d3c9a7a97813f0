"""The first messages of a connection: encryption, a request to cancel, what the client asks for, and its password."""

import re
import ssl
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from orchestration.conf.values import is_loopback
from orchestration.serving.postgres.activity import Activity
from orchestration.serving.postgres.password import check_password
from orchestration.serving.postgres.wire import PostgresError, Wire

TLS, GSS, CANCEL, VERSION_3 = 80877103, 80877104, 80877102, 3
NOT_A_DATABASE = {"bronze", "silver", "gold", "marts", "ops", "quality", "pg_catalog", "information_schema"}
"""DuckDB takes the first word of gold.aggregates for a database, if there is one."""
NOT_A_SETTING = {"user", "database", "options", "replication"}


@dataclass(frozen=True)
class Client:
    """Whoever has logged in. `settings`: what it sets at once, by lower name."""

    user: str
    database: str
    settings: Mapping[str, str]


def login(wire: Wire, activity: Activity, users: Mapping[str, str], tls: ssl.SSLContext | None) -> Client | None:
    """Return a client with the right password, or None after a request to cancel. PostgresError for a client that may not enter."""
    startup = _startup(wire, activity, tls)
    if startup is None:
        return None
    if tls and not isinstance(wire.socket, ssl.SSLSocket) and not is_loopback(wire.socket.getpeername()[0]):
        raise PostgresError("28000", "this server takes encrypted connections only", "Set sslmode=require.")
    user = startup.get("user", "")
    check_password(wire, users, user)
    database = startup.get("database") or user
    if database in NOT_A_DATABASE:
        raise PostgresError("3D000", f'database "{database}" does not exist', "It is the name of a schema: choose another one.")
    return Client(user, database, _settings(startup))


def _startup(wire: Wire, activity: Activity, tls: ssl.SSLContext | None) -> dict[str, str] | None:
    """Return what the startup message has, by name."""
    while True:
        body = wire.startup()
        (code,) = struct.unpack_from("!i", body)
        if code == CANCEL:
            activity.cancel(struct.unpack_from("!i", body, 4)[0], body[8:])
            return None
        if code == TLS and tls and not isinstance(wire.socket, ssl.SSLSocket):
            wire.socket.sendall(b"S")
            wire.secure(tls)
        elif code in {TLS, GSS}:
            wire.socket.sendall(b"N")
        elif code >> 16 == VERSION_3:
            return _negotiated(wire, code & 0xFFFF, body[4:])
        else:
            raise PostgresError("0A000", f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}: server supports 3.0")


def _negotiated(wire: Wire, minor: int, body: bytes) -> dict[str, str]:
    """Return the parameters of a startup message. A newer protocol than 3.0, and its options, are declined."""
    words = [word.decode() for word in body.split(b"\0")]
    startup = {name: value for name, value in zip(words[::2], words[1::2], strict=False) if name}
    declined = [name for name in startup if name.startswith("_pq_.")]
    if minor or declined:
        wire.write("v", struct.pack("!ii", VERSION_3 << 16, len(declined)), *(name.encode() + b"\0" for name in declined))
    return {name: value for name, value in startup.items() if name not in declined}


def _settings(startup: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that are parameters of their own, and those in `options`: -c name=value or --name=value."""
    settings = {name.lower(): value for name, value in startup.items() if name not in NOT_A_SETTING}
    for option in re.split(r"(?<!\\)\s+", re.sub(r"(^|\s)-c\s*", r"\1--", startup.get("options", "")).strip()):
        name, _, value = re.sub(r"\\(.)", r"\1", option).removeprefix("--").partition("=")
        if name:
            settings[name.lower()] = value
    return settings
