"""Tables of schema `quality`: results, failed_rows, reference, releases. Append only; the writer holds `lock(lake)`.

Without that lock two processes could lose each other's rows on a local disk. Times are in UTC.
"""

import getpass
import socket
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime

import pyarrow as pa

from orchestration.engine.lake import Lake
from orchestration.errors import ConfError
from orchestration.location import Location
from orchestration.storage.commit import append_rows, compact_many, create, widen
from orchestration.storage.delta import Filters, is_table, path_of, table_of
from orchestration.storage.gate_state import RELEASES, Release, closed_gates
from orchestration.storage.held_leases import HeldLease
from orchestration.storage.lease import sole_writer


def lock(lake: Location) -> AbstractContextManager[HeldLease]:
    """The lock of all tables of the schema; HeldError where another process has it."""
    return sole_writer(lake / "quality")


def read(lake: Location, table: str, schema: pa.Schema, columns: list[str] | None = None, where: Filters | None = None) -> pa.Table:
    """All rows, or those of `where`; none for a table that does not exist. One of an older version may lack columns of `schema`."""
    path = path_of(lake, table)
    return table_of(path, columns, where) if is_table(path) else schema.empty_table()


def append(lake: Location, table: str, rows: pa.Table, settings: Mapping[str, str] | None = None) -> None:
    """Append, or create the table with `settings`. New columns are added."""
    path = path_of(lake, table)
    create(path, rows.schema, settings)
    widen(path, rows.schema)
    append_rows(path, rows)
    compact_many(path)


def release_version(lake: Lake, table: str, version: int, reason: str, at: datetime) -> str:
    """Release the versions of a table up to this one, for whoever runs this; returns what was released, in words. `at`: UTC.

    ConfError if the version is not held back, or without a reason.
    """
    if not reason.strip():
        raise ConfError("--reason is empty; say why the failing rows may go to gold. The reason is kept for ever.")
    with lock(lake.conf.lake):
        held = next((state for state in closed_gates(lake.conf, lake.table_path) if state.table == table), None)
        if held is None or held.failure is None:
            raise ConfError(f"no version of {table} is held back; `tidemark status` tells which are.")
        first, last = held.version + 1, held.failure.version
        if not first <= version <= last:
            which = f"version {last}" if first == last else f"versions {first} to {last}"
            raise ConfError(f"version {version} of {table} is not held back; {which} can be released.")
        by, failed = f"{getpass.getuser()}@{socket.gethostname()}", held.failure.found
        RELEASES.append(lake.conf.lake, [Release(table, held.table_id, version, held.version, reason.strip(), by, at, failed)])
    return f"{table} up to version {version}; failed: {'; '.join(held.failure.found)}"
