"""Tables of a lake: where they are, how they are made, and the one way to append to them."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema, write_deltalake
from pyspark.sql import DataFrame

from bronze.schema import EVENTS, EVENTS_PARTITION
from gold.schema import AGGREGATES, VECTORS
from gold.schema import LATE as LATE_FOR_GROUP
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.delta import OF_LOG, committing, is_table, once, open_table, sum_up, written_by
from orchestration.storage.generations import Generation, active_generation
from silver.schema import DUPLICATES, LATE, QUARANTINE, READINGS

MAX_ARROW_ROWS = 100_000
"""Up to so many rows it is not worth to plan, or to compile, a job of Spark."""


@dataclass(frozen=True)
class Table:
    """A declared table. `statistics`: the columns that queries skip files by; statistics on others would cost and serve nobody."""

    name: str
    location: Location
    schema: pa.Schema
    statistics: tuple[str, ...]
    partition: str | None = None


class LakeStore:
    """What every room may ask of a lake without a session; engine.lake.Lake adds the session."""

    def __init__(self, conf: Conf, generation: Generation | None = None) -> None:
        """`generation`: work on this one, instead of the active one."""
        self.conf = conf
        self.generation = generation or active_generation(conf.lake)

    @cached_property
    def tables(self) -> dict[str, Table]:
        """Every table that flows write, by its SQL name."""
        return tables(self.conf, self.generation)

    def app_id(self, flow: str, table: str) -> str:
        """The application id of a flow's appends to a table, by which Delta knows a repeated one."""
        return f"{self.conf.pipeline}/{flow}/{table}/{self.generation.holder(flow)}"

    def table_path(self, name: str) -> Location:
        return self.generation.table(self.conf.lake, name)

    def checkpoint(self, flow: str) -> Location:
        return self.generation.checkpoint(self.conf.lake, flow)


def tables(conf: Conf, generation: Generation) -> dict[str, Table]:
    """Every table that flows write, by its SQL name."""
    lineage = ("ingested_at", "bronze_batch", "bronze_row")
    of_reading = ("device_id", "metric", "event_time", *lineage)
    of_windows = ("window_end", "revision", "gold_batch")
    declared: dict[str, tuple[pa.Schema, tuple[str, ...]]] = {
        "bronze.events": (EVENTS, lineage),
        "silver.readings": (READINGS, of_reading),
        "silver.quarantine": (QUARANTINE, of_reading),
        "silver.late": (LATE, (*of_reading, "retry")),
        "silver.duplicates": (DUPLICATES, (*of_reading, "retry")),
    }
    for group in conf.groups:
        declared[f"gold.{group}_aggregates"] = AGGREGATES, ("device_id", "metric", *of_windows)
        declared[f"gold.{group}_vectors"] = VECTORS, ("entity", *of_windows)
        declared[f"gold.{group}_late"] = LATE_FOR_GROUP, ("device_id", "metric", "window_end", "gold_batch")
    return {
        name: Table(name, generation.table(conf.lake, name), schema, statistics, EVENTS_PARTITION if name == "bronze.events" else None)
        for name, (schema, statistics) in declared.items()
    }


def ensure(table: Table) -> None:
    """Create the table unless it is there; refuse one that has other columns than declared."""
    declared = Schema.from_arrow(table.schema)
    if is_table(table.location):
        known = open_table(table.location)
    else:
        table.location.local.mkdir(parents=True, exist_ok=True)
        known = DeltaTable.create(
            str(table.location),
            schema=declared,
            partition_by=[table.partition] if table.partition else None,
            configuration={"delta.dataSkippingStatsColumns": ",".join(table.statistics)} | OF_LOG,
            mode="ignore",
        )
        sum_up(table.location, known)
    actual, wanted = _types(known.schema().to_json()), _types(declared.to_json())
    if actual != wanted:
        differing = (name for name in actual | wanted if actual.get(name) != wanted.get(name))
        difference = ", ".join(f"{name} is {actual.get(name, 'absent')}, declared {wanted.get(name, 'absent')}" for name in differing)
        raise TidemarkError(
            f"{table.name} at {table.location} has other columns than this version of Tidemark writes: {difference}.\n"
            "  It was written by another version, or by hand: restore it, or move the lake away to start anew."
        )


def ensure_rows(path: Location, schema: pa.Schema) -> None:
    """The same for a table that Spark never writes."""
    if not is_table(path):
        write_deltalake(str(path), schema.empty_table(), mode="append", configuration=OF_LOG)


def append(rows: DataFrame, table: Table, app_id: str, version: int, *, is_few: bool = False) -> None:
    """Append `rows` once: of a repeat with the same app id and a version that is not higher nothing is written.

    The rows are computed all the same. Delta would not even look at them, and a query that keeps state (silver.readings)
    then ends at every start: Spark refuses a micro-batch whose state was not brought up to date.
    `is_few`: they are written without Spark, in a tenth of the time.
    """
    if is_few:
        append_rows(table.location, rows.toArrow(), app_id, version)
    elif written_by(table.location, app_id) >= version:
        rows.write.format("noop").mode("overwrite").save()
    else:
        rows.write.format("delta").mode("append").option("txnAppId", app_id).option("txnVersion", version).save(str(table.location))


def append_rows(path: Location, rows: pa.Table, app_id: str, version: int) -> None:
    """Append a few rows once, without Spark."""
    with committing(path) as table:
        if (properties := once(table, app_id, version)) is not None:
            write_deltalake(table, rows, mode="append", commit_properties=properties)


def _types(schema_json: str) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in json.loads(schema_json)["fields"]}
