"""The working store of one verification: a DuckDB file with the recorded tables and what bronze gives, bounded in memory."""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from orchestration.audit.verify.lake_snapshot import LakeSnapshot
from orchestration.audit.verify.tables import batches

MEMORY = "2GB"
IDENTITY = ("bronze_batch", "bronze_row", "part")
KEY = ("device_id", "metric", "event_time")
LINEAGE = "source VARCHAR, ingested_at TIMESTAMP, bronze_batch BIGINT, bronze_row BIGINT, part INTEGER, parts INTEGER"
DEVICES = "device_id VARCHAR, zone VARCHAR, groups VARCHAR[], is_known BOOLEAN, registered_at TIMESTAMP"
READINGS = f"""
  device_id VARCHAR, metric VARCHAR, event_time TIMESTAMP, value DOUBLE, unit VARCHAR, aggregation VARCHAR, step_seconds INTEGER,
  zone VARCHAR, groups VARCHAR[], {LINEAGE}
"""
QUARANTINE = f"""
  broken_rules VARCHAR[], payload BLOB, header VARCHAR, device_id VARCHAR, metric VARCHAR, event_time TIMESTAMP, value DOUBLE,
  position VARCHAR, received_at TIMESTAMP, {LINEAGE}
"""
DUPLICATES = f"""
  device_id VARCHAR, metric VARCHAR, event_time TIMESTAMP, value DOUBLE, {LINEAGE}, kept_batch BIGINT, kept_row BIGINT, kept_part INTEGER,
  retry BIGINT
"""
WINDOW = "window_start TIMESTAMP, window_end TIMESTAMP"
AGGREGATES = f"""
  device_id VARCHAR, metric VARCHAR, {WINDOW}, value DOUBLE, count BIGINT, min DOUBLE, max DOUBLE, sum DOUBLE, latest DOUBLE,
  revision INTEGER
"""
VECTORS = f"entity VARCHAR, {WINDOW}, vector DOUBLE[], missing VARCHAR[], filled VARCHAR[], revision INTEGER"
LATE_FOR_GROUP = "window_end TIMESTAMP, bronze_batch BIGINT, bronze_row BIGINT, part INTEGER"


def opened(folder: Path) -> duckdb.DuckDBPyConnection:
    """An empty store in this folder."""
    connection = duckdb.connect(folder / "store.duckdb", config={"memory_limit": MEMORY, "temp_directory": str(folder / "spill")})
    connection.execute("set enable_progress_bar = false")
    connection.execute("set preserve_insertion_order = false")
    return connection


def record(store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, table: str, name: str, columns: str, *, where: str = "true") -> None:
    """A recorded table of the snapshot as `name`; without rows where the lake has no such table."""
    store.execute(f"create or replace table {name} ({columns})")
    if table in snapshot.versions:
        names = column_names(columns)
        store.register("arriving", batches(snapshot.tables[table], snapshot.versions[table], names, where))
        store.execute(f"insert into {name} by name select * from arriving")
        store.unregister("arriving")


def evaluated_view(store: duckdb.DuckDBPyConnection, name: str, columns: str, files: Path) -> None:
    """Parquet files as `name`, also where there are none."""
    if any(files.iterdir()):
        store.execute(f"create view {name} as select {', '.join(column_names(columns))} from '{files}/*.parquet'")
    else:
        store.execute(f"create table {name} ({columns})")


def column_names(columns: str) -> list[str]:
    """Names of a list of columns as SQL writes it."""
    return [column.split()[0] for column in columns.split(",")]


def listed(names: Sequence[str], prefix: str = "") -> str:
    """Names as SQL lists them."""
    return ", ".join(f"{prefix}{name}" for name in names)
