"""The working store of one verification: a DuckDB file with the recorded tables and what bronze gives, bounded in memory.

Delta tables come at one version, as Arrow, without Spark: deletion vectors are honoured, and a stream of batches bounds the memory.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from orchestration.audit.verify.lake_snapshot import LakeSnapshot
from orchestration.location import Location
from orchestration.storage.delta import ask, open_table

MEMORY = "2GB"
NONE = "false"
"""The condition on rows that holds for none."""
IDENTITY = ("bronze_batch", "bronze_row", "part")
KEY = ("device_id", "metric", "event_time")
PART_OF_EVENT = "bronze_batch BIGINT, bronze_row BIGINT, part INTEGER"
LINEAGE = f"source VARCHAR, ingested_at TIMESTAMP, {PART_OF_EVENT}, parts INTEGER"
DEVICES = "device_id VARCHAR, zone VARCHAR, groups VARCHAR[], is_known BOOLEAN, registered_at TIMESTAMP, moved_at TIMESTAMP"
REFERENCES = "key_of VARCHAR, key VARCHAR, attributes MAP(VARCHAR, VARCHAR), registered_at TIMESTAMP"
READINGS = f"""
  device_id VARCHAR, metric VARCHAR, event_time TIMESTAMP, value DOUBLE, unit VARCHAR, aggregation VARCHAR, step_seconds INTEGER,
  zone VARCHAR, groups VARCHAR[], attributes MAP(VARCHAR, VARCHAR), {LINEAGE}
"""
LATE = f"{READINGS}, retry BIGINT"
QUARANTINE = f"""
  broken_rules VARCHAR[], payload BLOB, header VARCHAR, device_id VARCHAR, metric VARCHAR, event_time TIMESTAMP, value DOUBLE,
  position VARCHAR, received_at TIMESTAMP, {LINEAGE}
"""
DUPLICATES = f"""
  device_id VARCHAR, metric VARCHAR, event_time TIMESTAMP, value DOUBLE, {LINEAGE}, kept_batch BIGINT, kept_row BIGINT, kept_part INTEGER,
  is_conflict BOOLEAN, retry BIGINT
"""
WINDOW = "window_start TIMESTAMP, window_end TIMESTAMP"
AGGREGATES = f"""
  device_id VARCHAR, metric VARCHAR, {WINDOW}, value DOUBLE, count BIGINT, min DOUBLE, max DOUBLE, sum DOUBLE, latest DOUBLE,
  revision INTEGER
"""
VECTORS = f"entity VARCHAR, {WINDOW}, vector DOUBLE[], missing VARCHAR[], filled VARCHAR[], revision INTEGER"
LATE_FOR_GROUP = f"window_end TIMESTAMP, {PART_OF_EVENT}"
NUMBERS = ("value", "min", "max", "sum", "latest")
"""The columns of AGGREGATES that are numbers of readings."""

INSTANT = pa.timestamp("us")
"""In UTC. Without a zone, because DuckDB compares instants with one only with an extension that it would have to download."""


def opened(folder: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(folder / "store.duckdb", config={"memory_limit": MEMORY, "temp_directory": str(folder / "spill")})
    connection.execute("set enable_progress_bar = false")
    connection.execute("set preserve_insertion_order = false")
    return connection


def record(store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, table: str, name: str, columns: str, *, where: str = "true") -> None:
    """A recorded table of the snapshot as `name`; without rows where the lake has no such table."""
    store.execute(f"create or replace table {name} ({columns})")
    record_more(store, snapshot, table, name, columns, where=where)


def record_more(store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, table: str, name: str, columns: str, *, where: str) -> None:
    """Add rows to what is there."""
    if table in snapshot.versions and where != NONE:
        stored = {field.name for field in open_table(snapshot.tables[table], snapshot.versions[table]).schema().fields}
        names = [column for column in column_names(columns) if column in stored]  # an older lake may have fewer
        store.register("arriving", batches(snapshot.tables[table], snapshot.versions[table], names, where))
        store.execute(f"insert into {name} by name select * from arriving")
        store.unregister("arriving")


def fill(store: duckdb.DuckDBPyConnection, name: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
    """Makes a table of rows that Python has, each with its values in the order of `columns`."""
    store.execute(f"create or replace temp table {name} ({columns})")
    schema = store.table(name).to_arrow_table().schema
    store.register("arriving", pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema))
    store.execute(f"insert into {name} from arriving")
    store.unregister("arriving")


def evaluated_view(store: duckdb.DuckDBPyConnection, name: str, columns: str, files: Path) -> None:
    """Parquet files as `name`, also where there are none."""
    if any(files.iterdir()):
        store.execute(f"create view {name} as select {', '.join(column_names(columns))} from '{files}/*.parquet'")
    else:
        store.execute(f"create table {name} ({columns})")


def column_names(columns: str) -> list[str]:
    """Names of a list of columns as SQL writes it."""
    return [column.split()[0] for column in re.split(r",(?![^(]*\))", columns)]


def listed(names: Sequence[str], prefix: str = "") -> str:
    return ", ".join(f"{prefix}{name}" for name in names)


def quoted(name: str) -> str:
    """Write a name as SQL does, whatever letters it has."""
    return '"' + name.replace('"', '""') + '"'


def batches(path: Location, version: int, columns: Sequence[str], where: str = "true") -> pa.RecordBatchReader:
    """Rows of a table as it was at that version; `where` is SQL."""
    query = f"select {', '.join(columns)} from recorded where {where}"
    reader = ask(query, {"recorded": open_table(path, version)})
    schema = _plain_schema(reader.schema)
    return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in reader))


def chunks(reader: pa.RecordBatchReader, rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of at least so many, but for the last."""
    held: list[pa.RecordBatch] = []
    for batch in reader:
        held.append(batch)
        if sum(batch.num_rows for batch in held) >= rows:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def plain(rows: pa.Table) -> pa.Table:
    return rows.cast(_plain_schema(rows.schema))


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """Types that every reader of Arrow knows."""
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return INSTANT
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind) else kind
