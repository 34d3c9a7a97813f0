"""The connections of a server, in a file in memory that its processes share: for each a slot of fixed size, and a lock while it is taken.

A lock ends with its process, however that ends.
"""

import fcntl
import hmac
import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

SLOT_BYTES, QUERY_BYTES, NAME_BYTES = 2048, 1000, 63
SLOTS_AT = 4096
"""The first byte of slots. Those before are locked, never written: one for each connection, one for each turn."""
MAX_ACTIVE = 8
"""Statements that run at once, of all connections."""
HIDDEN = "<insufficient privilege>"
STATES = {"I": "idle", "T": "idle in transaction", "E": "idle in transaction (aborted)"}


class Connection(msgspec.Struct, kw_only=True):
    """A row of pg_stat_activity; instants in UTC. `key`: a client that knows it may cancel. `query`: runs, or ran last.

    Of other users' connections only pid, user and database are shown.
    """

    user: str
    database: str
    pid: int = msgspec.field(default_factory=os.getpid)
    key: bytes = msgspec.field(default_factory=lambda: secrets.token_bytes(4))
    slot: int = 0
    client_address: str | None = None
    client_port: int | None = None
    application_name: str | None = None
    backend_start: datetime | None = msgspec.field(default_factory=lambda: datetime.now(UTC))
    state: str | None = None
    state_change: datetime | None = None
    query_start: datetime | None = None
    query: str = ""


class Activity:
    """Made by the server; each of its processes takes a slot of its own."""

    def __init__(self, connections: int) -> None:
        self._file, self._count, self._slot = os.memfd_create("connections"), connections, 0
        self.own: Connection | None = None

    def enter(self, own: Connection) -> bool:
        """Take a slot; False if there is none."""
        if (slot := self._locked(0, self._count)) is None:
            return False
        self._slot, self.own = slot, own
        self.rests("I")
        return True

    def take_turn(self) -> int | None:
        """Take one of MAX_ACTIVE turns to run; None if there is none."""
        return self._locked(self._count, MAX_ACTIVE)

    def end_turn(self, turn: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, turn)

    def runs(self, query: str, application_name: str) -> None:
        """Note the query that this connection begins."""
        if self.own:
            self.own.query, self.own.query_start = cut(query, QUERY_BYTES), datetime.now(UTC)
            self.own.application_name = cut(application_name, NAME_BYTES)
            self._note("active")

    def rests(self, transaction: str) -> None:
        """Note that this connection waits for its client. `transaction`: the state that ReadyForQuery has."""
        self._note(STATES[transaction])

    def rows(self) -> list[Connection]:
        """Return all connections, as this one may see them."""
        user = self.own.user if self.own else None
        return [row if row.user == user else _hidden(row) for row in self._all()]

    def cancel(self, pid: int, key: bytes) -> None:
        """End the query of a connection, for a client that knows its key."""
        if any(row.pid == pid and hmac.compare_digest(row.key, key) for row in self._all()):
            os.kill(pid, signal.SIGUSR1)

    def send(self, pid: int, number: signal.Signals) -> bool:
        """End the query of a connection by SIGUSR1, or itself by SIGTERM. False: there is none. PermissionError: it is another user's."""
        user = next((row.user for row in self._all() if row.pid == pid), None)
        if user is None:
            return False
        if self.own is None or user != self.own.user:
            raise PermissionError
        os.kill(pid, number)
        return True

    def leave(self, pid: int) -> None:
        """Empty the slot of a process that has ended."""
        for row in self._all():
            if row.pid == pid:
                self._write(row.slot, b"")

    def _note(self, state: str) -> None:
        if own := self.own:
            own.slot, own.state, own.state_change = self._slot, state, datetime.now(UTC)
            self._write(own.slot, msgspec.msgpack.encode(own))

    def _all(self) -> Iterator[Connection]:
        fcntl.lockf(self._file, fcntl.LOCK_SH, 0, SLOTS_AT)
        content = os.pread(self._file, self._count * SLOT_BYTES, SLOTS_AT)
        fcntl.lockf(self._file, fcntl.LOCK_UN, 0, SLOTS_AT)
        for at in range(0, len(content), SLOT_BYTES):
            if length := int.from_bytes(content[at : at + 2]):
                yield msgspec.msgpack.decode(content[at + 2 : at + 2 + length], type=Connection)

    def _write(self, slot: int, content: bytes) -> None:
        at = SLOTS_AT + slot * SLOT_BYTES
        fcntl.lockf(self._file, fcntl.LOCK_EX, SLOT_BYTES, at)
        os.pwrite(self._file, len(content).to_bytes(2) + content, at)
        fcntl.lockf(self._file, fcntl.LOCK_UN, SLOT_BYTES, at)

    def _locked(self, first: int, count: int) -> int | None:
        for byte in range(first, first + count):
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
                return byte
        return None


def _hidden(row: Connection) -> Connection:
    return Connection(user=row.user, database=row.database, pid=row.pid, key=b"", backend_start=None, query=HIDDEN)


def cut(text: str, most: int) -> str:
    """Return as many characters as fit into so many bytes."""
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")
