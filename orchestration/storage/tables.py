"""Tables of a lake: where they are, how they are made, and the one way to append to them."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from bronze.schema import EVENTS, EVENTS_PARTITION
from gold.schema import AGGREGATES, VECTORS
from gold.schema import LATE as LATE_FOR_GROUP
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.commits import committing, sum_up
from orchestration.storage.delta import OF_LOG, OpenTable, is_table, open_table, written_by
from orchestration.storage.generations import Generation
from silver.schema import DUPLICATES, LATE, QUARANTINE, READINGS

MAX_ARROW_ROWS = 100_000
"""Up to so many rows it is not worth to plan, or to compile, a job of Spark."""
FIRST_INSTANT = datetime.min.replace(tzinfo=UTC)
"""Of Python's. Silver took earlier ones for event times once, so lakes may hold some."""


@dataclass(frozen=True)
class Table:
    """A declared table. `statistics`: the columns that queries skip files by; statistics on others would cost and serve nobody."""

    name: str
    location: Location
    ddl: str
    statistics: tuple[str, ...]
    partition: str | None = None


def tables(conf: Conf, generation: Generation) -> dict[str, Table]:
    """Every table that flows write, by its SQL name."""
    place = partial(generation.table, conf.lake)
    lineage = ("ingested_at", "bronze_batch", "bronze_row")
    declared = [
        Table("bronze.events", place("bronze.events"), EVENTS, lineage, EVENTS_PARTITION),
        Table("silver.readings", place("silver.readings"), READINGS, ("device_id", "metric", "event_time", *lineage)),
        *(
            Table(name, place(name), ddl, ("device_id", "metric", "event_time", *lineage, *more))
            for name, ddl, more in (
                ("silver.quarantine", QUARANTINE, ()),
                ("silver.late", LATE, ("retry",)),
                ("silver.duplicates", DUPLICATES, ("retry",)),
            )
        ),
    ]
    of_windows = ("window_end", "revision", "gold_batch")
    for group in conf.groups:
        for kind, ddl, statistics in (
            ("aggregates", AGGREGATES, ("device_id", "metric", *of_windows)),
            ("vectors", VECTORS, ("entity", *of_windows)),
            ("late", LATE_FOR_GROUP, ("device_id", "metric", "window_end", "gold_batch")),
        ):
            name = f"gold.{group}_{kind}"
            declared.append(Table(name, place(name), ddl, statistics))
    return {table.name: table for table in declared}


def ensure(table: Table) -> None:
    """Create the table unless it is there; refuse one that has other columns than declared. The session of this process reads the DDL."""
    declared = _columns(table.ddl)
    if is_table(table.location):
        known = open_table(table.location)
    else:
        table.location.local.mkdir(parents=True, exist_ok=True)
        known = DeltaTable.create(
            str(table.location),
            schema=Schema.from_json(declared),
            partition_by=[table.partition] if table.partition else None,
            configuration={"delta.dataSkippingStatsColumns": ",".join(table.statistics)} | OF_LOG,
            mode="ignore",
        )
        sum_up(table.location, known)
    found = _types(known.schema().to_json())
    if found != _types(declared):
        difference = _difference(found, _types(declared))
        raise TidemarkError(
            f"{table.name} at {table.location} has other columns than this version of Tidemark writes: {difference}.\n"
            "  It was written by another version, or by hand: restore it, or move the lake away to start anew."
        )


def ensure_rows(path: Location, schema: pa.Schema) -> None:
    """The same for a table that Spark never writes."""
    if not is_table(path):
        write_deltalake(str(path), schema.empty_table(), mode="append", configuration=OF_LOG)


def append(rows: DataFrame, table: Table, app_id: str, version: int, count: int | None = None) -> None:
    """Append `rows` once: of a repeat with the same app id and a version that is not higher nothing is written.

    The rows are computed all the same. Delta would not even look at them, and a query that keeps state (silver.readings)
    then ends at every start: Spark refuses a micro-batch whose state was not brought up to date.
    `count`: how many rows there are, where that is known; a few are written without Spark, in a tenth of the time.
    """
    if count is not None and count <= MAX_ARROW_ROWS:
        append_rows(table.location, rows.toArrow(), app_id, version)
    elif written_by(table.location, app_id) >= version:
        rows.write.format("noop").mode("overwrite").save()
    else:
        rows.write.format("delta").mode("append").option("txnAppId", app_id).option("txnVersion", version).save(str(table.location))


def append_rows(path: Location, rows: pa.Table, app_id: str, version: int) -> None:
    """Append a few rows once, without Spark."""
    with committing(path) as table:
        written = table.transaction_version(app_id)
        if written is None or written < version:
            once = CommitProperties(app_transactions=[Transaction(app_id, version)])
            write_deltalake(table, rows, mode="append", commit_properties=once)


def max_in_log(table: Table, column: str, version: int | None = None) -> Any:
    """The greatest value of a column with statistics, from the log alone; None for an empty table.

    An instant before FIRST_INSTANT is told as that.
    """
    if not is_table(table.location):
        return None
    log = in_log(open_table(table.location, version), f"max.{column}")
    if not log.num_columns:
        return None
    greatest = pc.max(log.column(0))
    is_instant = greatest.is_valid and pa.types.is_timestamp(greatest.type)
    return FIRST_INSTANT if is_instant and pc.less(greatest, FIRST_INSTANT).as_py() else greatest.as_py()


def in_log(table: OpenTable, *columns: str) -> pa.Table:
    """One row a file: these columns of what the log tells of it, without those that it knows nothing of.

    Only what is asked for becomes Python's: statistics of event times may hold an instant that it has none for, and looking would fail.
    """
    log = pa.table(table.get_add_actions(flatten=True))
    return log.select([name for name in columns if name in log.column_names])


@cache
def _columns(ddl: str) -> str:
    """As JSON. All groups have the same three, and the JVM takes 3 ms for each."""
    return StructType.fromDDL(ddl).json()


def _types(schema_json: str) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in json.loads(schema_json)["fields"]}


def _difference(actual: dict[str, Any], declared: dict[str, Any]) -> str:
    names = [name for name in {**actual, **declared} if actual.get(name) != declared.get(name)]
    return ", ".join(f"{name} is {actual.get(name, 'absent')}, declared {declared.get(name, 'absent')}" for name in names)
