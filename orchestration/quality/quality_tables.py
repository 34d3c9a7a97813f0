"""Tables of schema `quality`: results, failed_rows, reference, releases. Append only; the writer holds `lock(lake)`.

Without that lock two processes could lose each other's rows on a local disk. Times are in UTC.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager

import pyarrow as pa

from orchestration.location import Location
from orchestration.storage.commit import append_rows, compact_many, create, widen
from orchestration.storage.delta import Filters, is_table, path_of, table_of
from orchestration.storage.lease import Lease, sole_writer


def lock(lake: Location) -> AbstractContextManager[Lease]:
    """The lock of all tables of the schema; HeldError where another process has it."""
    return sole_writer(lake / "quality")


def read(lake: Location, table: str, schema: pa.Schema, columns: list[str] | None = None, where: Filters | None = None) -> pa.Table:
    """All rows, or those that fulfil `where` (see delta.table_of); no rows of `schema` for a table that does not exist.

    A table that an older version wrote may lack columns of `schema`.
    """
    path = path_of(lake, table)
    return table_of(path, columns, where) if is_table(path) else schema.empty_table()


def append(lake: Location, table: str, rows: pa.Table, settings: Mapping[str, str] | None = None) -> None:
    """Append, or create the table with `settings`. New columns are added."""
    path = path_of(lake, table)
    create(path, rows.schema, settings)
    widen(path, rows.schema)
    append_rows(path, rows)
    compact_many(path)
