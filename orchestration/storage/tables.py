"""Tables of a lake: where they are and how they are made. How rows come to them: commit.py."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from deltalake import Schema

from bronze.schema import EVENTS, EVENTS_PARTITION
from gold.schema import AGGREGATES, VECTORS
from gold.schema import LATE as LATE_FOR_GROUP
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.commit import STATISTICS, create
from orchestration.storage.delta import open_table
from orchestration.storage.generations import Generation, active_generation
from silver.schema import DUPLICATES, LATE, QUARANTINE, READINGS

MAX_ARROW_ROWS = 100_000
"""Up to so many rows it is not worth to compile a job of Spark."""


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
    create(table.location, table.schema, {STATISTICS: ",".join(table.statistics)}, table.partition)
    declared, known = Schema.from_arrow(table.schema), open_table(table.location)
    actual, wanted = _types(known.schema().to_json()), _types(declared.to_json())
    if actual != wanted:
        differing = (name for name in actual | wanted if actual.get(name) != wanted.get(name))
        difference = ", ".join(f"{name} is {actual.get(name, 'absent')}, declared {wanted.get(name, 'absent')}" for name in differing)
        raise TidemarkError(
            f"{table.name} at {table.location} has other columns than this version of Tidemark writes: {difference}.\n"
            "  It was written by another version, or by hand: restore it, or move the lake away to start anew."
        )


def _types(schema_json: str) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in json.loads(schema_json)["fields"]}
