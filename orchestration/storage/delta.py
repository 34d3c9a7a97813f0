"""Delta tables without Spark: opened, asked and appended to. Every other room asks here; nobody else imports deltalake."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError

from orchestration.location import Location
from orchestration.storage.commits import committing

PLAIN = 1
"""The reader version of tables without deletion vectors and renamed columns: their rows are what their files hold."""
UnreadableTableError: TypeAlias = DeltaError
"""What opening a damaged table raises."""
OpenTable: TypeAlias = DeltaTable
"""A table at one version, as `open_table` gives it."""
OF_LOG = {"delta.enableExpiredLogCleanup": "false", "delta.checkpointInterval": "10"}
"""Checkpoints at each tenth commit, whoever makes it. Delta would forget versions by their age alone, 30 days; maintenance knows which ones
snapshots and streams need."""
Filters = Sequence[tuple[str, str, Any]]


def is_table(path: Location) -> bool:
    """Whether there is a Delta table."""
    return DeltaTable.is_deltatable(str(path))


def open_table(path: Location, version: int | None = None) -> OpenTable:
    """The table at a version, None for the newest one."""
    return DeltaTable(str(path), version=version)


def table_id(path: Location) -> str:
    """Delta gives every table an id when it is made."""
    return str(DeltaTable(str(path)).metadata().id)


def version_of(path: Location) -> int:
    """The newest version; -1 where there is no table."""
    return DeltaTable(str(path)).version() if is_table(path) else -1


def written_by(path: Location, app_id: str) -> int:
    """The version of the newest transaction of an application in the table; -1 for none, and where there is no table."""
    version = DeltaTable(str(path)).transaction_version(app_id) if is_table(path) else None
    return -1 if version is None else version


def rows_of(path: Location, columns: list[str] | None = None, filters: Filters | None = None) -> list[dict[str, Any]]:
    """Rows of a small table, in no order; none where there is no table.

    `filters`: conditions (column, operator, value), all of which must hold.
    """
    if not is_table(path):
        return []
    table = pa.table(DeltaTable(str(path)).to_pyarrow_table(columns=columns, filters=None if filters is None else list(filters)))
    rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
    return rows


def ask(sql: str, tables: Mapping[str, OpenTable], settings: Mapping[str, str] | None = None) -> pa.RecordBatchReader:
    """The answer of DataFusion to a query over tables by these names, batch by batch. `settings`: of DataFusion."""
    query = QueryBuilder(dict(settings)) if settings else QueryBuilder()
    for name, table in tables.items():
        query.register(name, table)
    return pa.RecordBatchReader.from_stream(query.execute(sql))


def append(path: Location, rows: pa.Table, configuration: Mapping[str, str] = OF_LOG) -> None:
    """Append rows; a table that is not there is made."""
    if not is_table(path):
        write_deltalake(str(path), rows, mode="append", configuration=dict(configuration))
        return
    with committing(path) as table:
        write_deltalake(table, rows, mode="append")


def delete(path: Location, predicate: str) -> None:
    """Delete the rows of which a predicate of DataFusion is true."""
    with committing(path) as table:
        table.delete(predicate)


def compact(path: Location, target_bytes: int, partition: tuple[str, str] | None = None) -> None:
    """Put small files together, of one partition or of a table without; rows and answers stay. One task at a time bounds the memory."""
    filters = [(partition[0], "=", partition[1])] if partition else None
    with committing(path) as table:
        metrics = table.optimize.compact(partition_filters=filters, target_size=target_bytes, max_concurrent_tasks=1)
        if metrics["numFilesRemoved"]:
            table.create_checkpoint()  # a reader then needs none of the entries that added the small files
