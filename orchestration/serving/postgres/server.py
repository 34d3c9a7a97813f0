"""Snapshots of a lake for clients of PostgreSQL: a process for each connection, which can write no file.

python server.py CONF --port 5433 --users users.txt [--cert server.crt --key server.key]
"""

import argparse
import fcntl
import hmac
import os
import re
import secrets
import signal
import socket
import ssl
import struct
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import pyarrow.compute  # so that each process has it
from orchestration.serving.postgres.wire import Fields, ProtocolError, PostgresError, Wire, error, text
from orchestration.conf.load import load
from orchestration.conf.place import place_of
from orchestration.serving.sql import landlock
from orchestration.serving.postgres.databases import Databases
from orchestration.serving.postgres.scram import Scram
from orchestration.serving.postgres.session import DEFAULTS, Session

SSL, GSS, CANCEL, VERSION = 80877103, 80877104, 80877102, 196608
SCHEMAS = {"bronze", "silver", "gold", "marts", "ops", "quality", "pg_catalog", "information_schema"}
"""No names of databases: DuckDB takes the first word of gold.aggregates for one."""
MAX_CONNECTIONS, MAX_ACTIVE = 50, 8
SECONDS, GRACE, LOGIN_SECONDS, IDLE_SECONDS = 300.0, 2.0, 10.0, 3600.0
MEMORY = 4 << 30
"""Bytes that the process of a connection may take."""


class Watch:
    """Ends what takes too long, or what its client cancels: by DuckDB, and where that does not end it, with the process."""

    def __init__(self, wire: Wire, databases: Databases, slots: int) -> None:
        self._wire, self._databases, self._slots, self._slot = wire, databases, slots, -1
        self._deadline, self._number, self.seconds = float("inf"), 0, SECONDS
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        threading.Thread(target=self._watch, daemon=True).start()

    def begins(self) -> None:
        """Wait for one of MAX_ACTIVE places: a lock of a byte, which ends with the process."""
        while self._slot < 0:
            for slot in range(MAX_ACTIVE):
                try:
                    fcntl.lockf(self._slots, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
                    self._slot = slot
                    break
                except OSError:
                    continue
            else:
                time.sleep(0.02)
        self._number, self._deadline = (
            self._number + 1,
            time.monotonic() + min(self.seconds, _seconds(self._databases.settings["statement_timeout"])),
        )

    def ends(self) -> None:
        self._deadline = float("inf")
        fcntl.lockf(self._slots, fcntl.LOCK_UN, 1, self._slot)
        self._slot = -1

    def _watch(self) -> None:
        while True:
            if signal.sigtimedwait({signal.SIGUSR1}, 0.25):
                self._end("canceling statement due to user request")
            elif time.monotonic() > self._deadline:
                self._end("canceling statement due to statement timeout")

    def _end(self, why: str) -> None:
        """What runs now, and nothing that comes after it."""
        number, end = self._number, time.monotonic() + GRACE
        while self._deadline != float("inf") and self._number == number:
            if running := self._databases.running:
                running.interrupt()
            if time.monotonic() > end:
                try:
                    body = error(PostgresError("57014", f"{why}; the connection ends with it"), "FATAL")
                    self._wire.socket.sendall(b"E" + struct.pack("!i", 4 + len(body)) + body)
                finally:
                    os._exit(1)
            time.sleep(0.05)


def _seconds(setting: str) -> float:
    """Of PostgreSQL's statement_timeout: milliseconds, or a number with its unit; 0: no limit of the session's own."""
    found = re.fullmatch(r"(\d+)\s*(ms|s|min)?", setting.strip())
    return int(found[1]) * {"s": 1.0, "min": 60.0}.get(found[2], 0.001) if found and int(found[1]) else float("inf")


def serve(conf: Path, listener: socket.socket, users: dict[str, str], tls: ssl.SSLContext | None) -> None:
    """Until SIGTERM or Ctrl-C."""
    plant, slots = place_of(conf, lambda: load(conf).group_windows), tempfile.TemporaryFile()
    plant.group_windows  # once, for every process
    keys: dict[int, bytes] = {}
    while True:
        connection, _ = listener.accept()
        while keys and (ended := os.waitpid(-1, os.WNOHANG)[0]):
            keys.pop(ended, None)
        key = secrets.token_bytes(4)
        if child := os.fork():
            keys[child] = key
            connection.close()
            continue
        listener.close()
        try:
            _serve_one(plant, connection, key, keys, users, tls, slots.fileno())
        except EOFError:
            pass
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)


def _serve_one(
    plant: object,
    connection: socket.socket,
    key: bytes,
    keys: dict[int, bytes],
    users: dict[str, str],
    tls: ssl.SSLContext | None,
    slots: int,
) -> None:
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.settimeout(LOGIN_SECONDS)
    wire = Wire(connection)
    try:
        given, wire = _greeting(wire, keys, tls)
        if given is None:
            return
        if len(keys) >= MAX_CONNECTIONS:
            raise PostgresError("53300", "sorry, too many clients already")
        _authenticate(wire, users, given.get("user", ""))
        if given.get("database") in SCHEMAS:
            raise PostgresError("3D000", f'database "{given["database"]}" does not exist')
        settings = DEFAULTS | {
            "database": given.get("database") or given["user"],
            "user": given["user"],
            "session_authorization": given["user"],
        }
        databases = Databases(plant, settings)
        watch = Watch(wire, databases, slots)
        if landlock.is_supported():
            landlock._restrict()
        _bound_memory()
        wire.write("R", struct.pack("!i", 0))
        session = Session(wire, databases, settings, watch.begins, watch.ends)
        for name, value in _options(given):
            session.change(name, value)
        wire.write("K", struct.pack("!i", os.getpid()), key)
        wire.socket.settimeout(IDLE_SECONDS)
        session.run()
    except PostgresError as problem:
        wire.write("E", error(problem, "FATAL"))
        wire.flush()
    except (ProtocolError, struct.error, UnicodeDecodeError, ValueError) as problem:
        traceback.print_exc()
        wire.write("E", error(PostgresError("08P01", f"invalid message: {problem}"), "FATAL"))
        wire.flush()


def _greeting(wire: Wire, keys: dict[int, bytes], tls: ssl.SSLContext | None) -> tuple[dict[str, str] | None, Wire]:
    """What the client says first; None for the request to cancel another connection's query."""
    while True:
        body = wire.startup()
        code = struct.unpack_from("!i", body)[0]
        if code == CANCEL:
            process, key = struct.unpack_from("!i", body, 4)[0], body[8:]
            if process in keys and hmac.compare_digest(keys[process], key):
                os.kill(process, signal.SIGUSR1)
            return None, wire
        if code == SSL and tls and not isinstance(wire.socket, ssl.SSLSocket):
            wire.socket.sendall(b"S")
            if wire._got:
                raise ProtocolError("bytes before the handshake")
            wire = Wire(tls.wrap_socket(wire.socket, server_side=True))
        elif code in {SSL, GSS}:
            wire.socket.sendall(b"N")
        elif code >> 16 == 3:
            parts = body[4:].split(b"\0")
            given = dict(zip((part.decode() for part in parts[::2]), (part.decode() for part in parts[1::2]), strict=False))
            if code != VERSION or any(name.startswith("_pq_.") for name in given):
                wire.write("v", struct.pack("!ii", VERSION & 0xFFFF, 0))
            return {name: value for name, value in given.items() if name}, wire
        else:
            raise PostgresError("0A000", f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}")


def _authenticate(wire: Wire, users: dict[str, str], user: str) -> None:
    scram, wrong = Scram(users.get(user)), PostgresError("28P01", f'password authentication failed for user "{user}"')
    wire.write("R", struct.pack("!i", 10) + text("SCRAM-SHA-256") + b"\0")
    try:
        kind, body = wire.read()
        fields = Fields(body)
        if kind != "p" or fields.text() != "SCRAM-SHA-256":
            raise wrong
        fields.number("!i")
        wire.write("R", struct.pack("!i", 11) + scram.first(fields.rest().decode()).encode())
        kind, body = wire.read()
        answer = scram.final(body.decode()) if kind == "p" else None
    except (ValueError, KeyError):
        raise wrong from None
    if answer is None:
        raise wrong
    wire.write("R", struct.pack("!i", 12) + answer.encode())


def _options(given: dict[str, str]) -> list[tuple[str, str]]:
    found = [
        (name.lower(), value)
        for name, value in given.items()
        if name not in {"user", "database", "options", "replication"} and not name.startswith("_pq_.")
    ]
    words = given.get("options", "").replace("-c ", "-c").split()
    return found + [
        (name.lower().removeprefix("--"), value) for word in words for name, _, value in [word.removeprefix("-c").partition("=")]
    ]


def _bound_memory() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("conf", type=Path)
    parser.add_argument("--port", type=int, default=5433)
    parser.add_argument("--users", type=Path)
    parser.add_argument("--cert")
    parser.add_argument("--key")
    given = parser.parse_args()
    users = dict(line.split(":", 1) for line in given.users.read_text().split())
    tls = None
    if given.cert:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.minimum_version = ssl.TLSVersion.TLSv1_2
        tls.load_cert_chain(given.cert, given.key)
    with socket.create_server(("127.0.0.1", given.port), backlog=128) as listener:
        print("listening", flush=True)
        serve(given.conf, listener, users, tls)


if __name__ == "__main__":
    main()
