"""Tables of a lake: where they are and how they are made. How rows come to them: commit.py."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from deltalake import Schema

from bronze.schema import EVENTS, EVENTS_PARTITION
from gold.schema import ALERTS, BESIDE, FLOW_KINDS, KINDS, OF_EACH_STREAM, WINDOW_KEY
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.commit import STATISTICS, create, widen
from orchestration.storage.delta import open_table, written_by
from orchestration.storage.generations import Generation, active_generation
from silver.schema import DUPLICATES, LATE, QUARANTINE, READINGS


@dataclass(frozen=True)
class Table:
    """A declared table. `statistics`: the columns that queries skip files by; statistics on others would cost and serve nobody."""

    name: str
    location: Location
    schema: pa.Schema
    statistics: tuple[str, ...]
    partition: str | None = None


class LakeStore:
    """A lake without a session, for every room; engine.lake.Lake adds the session."""

    def __init__(self, conf: Conf, generation: Generation | None = None) -> None:
        """`generation`: work on this one, instead of the active one."""
        self.conf = conf
        self.generation = generation or active_generation(conf.lake)

    @cached_property
    def tables(self) -> dict[str, Table]:
        return tables(self.conf, self.generation)

    def gold(self, stream: str) -> tuple[Table, Table, Table]:
        """Aggregates, vectors and late rows of the groups of a stream, among those of other streams."""
        aggregates, vectors, late = (self.tables[self.generation.gold(stream, kind)] for kind in OF_EACH_STREAM)
        return aggregates, vectors, late

    def newest_gold_batch(self, stream: str, kind: str, version: int | None = None) -> int:
        """Return the newest of the stream's micro-batches with rows in a version of a table of gold; -1 for none."""
        name = self.generation.gold(stream, kind)
        return written_by(self.table_path(name), self.app_id(f"gold.{stream}", name), version)

    def app_id(self, flow: str, table: str) -> str:
        """The application id of a flow's appends to a table, by which Delta knows a repeated one."""
        return f"{self.conf.pipeline}/{flow}/{table}/{self.generation.holder(flow)}"

    def stored(self, name: str) -> str:
        """The table that holds one: gold.<group>_<kind> is a part of the table of the group's stream, gold.<flow> of that of its kind."""
        if name.removeprefix("gold.") in self.conf.flows:
            return f"gold.{self.conf.flows[name.removeprefix('gold.')].table}"
        group = self.conf.group_of(name)
        return self.generation.gold(group.stream, name.rpartition("_")[2]) if group else name

    def table_path(self, name: str) -> Location:
        return self.generation.table(self.conf.lake, self.stored(name))

    def checkpoint(self, flow: str) -> Location:
        return self.generation.checkpoint(self.conf.lake, flow)


def following(conf: Conf, generation: Generation) -> list[str]:
    """Name the tables that flows, anomalies and alerts write."""
    return [*dict.fromkeys(generation.gold(stream, "anomalies") for stream in conf.judged_streams), *conf.tables_of_incrementals]


def tables(conf: Conf, generation: Generation) -> dict[str, Table]:
    """Every table that flows write, by its SQL name."""
    lineage = ("ingested_at", "bronze_batch", "bronze_row")
    of_reading = ("device_id", "metric", "event_time", *lineage)
    declared: dict[str, tuple[pa.Schema, tuple[str, ...]]] = {
        "bronze.events": (EVENTS, lineage),
        "silver.readings": (READINGS, of_reading),
        "silver.quarantine": (QUARANTINE, of_reading),
        "silver.late": (LATE, (*of_reading, "retry")),
        "silver.duplicates": (DUPLICATES, (*of_reading, "retry")),
    }
    for stream in conf.streams:
        for kind in conf.kinds_of(stream):
            schema, key = KINDS[kind]
            of_key = (*key, "revision") if key else (*WINDOW_KEY,)
            declared[generation.gold(stream, kind)] = pa.schema([*schema, *BESIDE.get(kind, ())]), (*of_key, "gold_batch")
    for kind in {flow.table for flow in conf.flows.values()}:
        schema, key = FLOW_KINDS[kind]
        declared[f"gold.{kind}"] = schema, ("flow", *key)
    if conf.alerts:
        declared["gold.alerts"] = ALERTS, ("alert", "entity", "changed_at")
    return {
        name: Table(name, generation.table(conf.lake, name), schema, statistics, EVENTS_PARTITION if name == "bronze.events" else None)
        for name, (schema, statistics) in declared.items()
    }


def ensure(table: Table) -> None:
    """Create the table unless it is there; refuse one that has other columns than declared. Alerts and windows of earlier versions have
    fewer."""
    create(table.location, table.schema, {STATISTICS: ",".join(table.statistics)}, table.partition)
    if table.name.startswith(("gold.alerts", "gold.aggregates")):
        widen(table.location, table.schema)
    declared, table_there = Schema.from_arrow(table.schema), open_table(table.location)
    actual, wanted = _types(table_there.schema().to_json()), _types(declared.to_json())
    if actual != wanted:
        differing = (name for name in actual | wanted if actual.get(name) != wanted.get(name))
        difference = ", ".join(f"{name} is {actual.get(name, 'absent')}, declared {wanted.get(name, 'absent')}" for name in differing)
        raise TidemarkError(
            f"{table.name} at {table.location} has other columns than this version of Tidemark writes: {difference}.\n"
            "  It was written by another version, or by hand: restore it, or move the lake away to start anew."
        )


def _types(schema_json: str) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in json.loads(schema_json)["fields"]}
