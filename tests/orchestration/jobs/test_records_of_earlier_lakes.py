"""Logs go on in lakes that were made before: a table has the columns that it had, and its rows are read as they were."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gold.alerts.spec import Hours
from orchestration.alerts.notifications import DEAD_LETTERS, NOTIFICATIONS
from orchestration.alerts.records import ACKNOWLEDGEMENTS, SILENCES
from orchestration.jobs.maintenance import MAINTENANCE
from orchestration.location import Location
from orchestration.storage.gate_state import RELEASES
from orchestration.storage.generations import GENERATIONS
from orchestration.storage.log import Log
from orchestration.storage.marts import MARTS
from orchestration.storage.ops_tables import GAPS, NOTES, RUNS, TICKS
from orchestration.storage.snapshots import SNAPSHOTS
from tests.rows import at

HOURS = pa.struct([("zone", pa.string()), ("days", pa.list_(pa.int64())), ("begin", pa.int64()), ("end", pa.int64())])
NOON = at("12:00:00")
TYPES = {
    "text": pa.string(),
    "whole": pa.int64(),
    "real": pa.float64(),
    "instant": pa.timestamp("us", "UTC"),
    "hours": HOURS,
    "texts": pa.list_(pa.string()),
    "wholes_by_name": pa.map_(pa.string(), pa.int64()),
    "instants_by_name": pa.map_(pa.string(), pa.timestamp("us", "UTC")),
}
TABLES: list[tuple[Log[Any], str, tuple[Any, ...]]] = [
    (ACKNOWLEDGEMENTS, "alert_id text, author text, noted_at instant, note text", ("e1", "kim", NOON, "on my way")),
    (
        SILENCES,
        "silence_id text, alert text, entity text, begins_at instant, ends_at instant, hours hours, author text, reason text, "
        "noted_at instant",
        ("s1", "*", "oven", NOON, NOON, {"zone": "UTC", "days": [5, 6], "begin": 0, "end": 90}, "kim", "no shift", NOON),
    ),
    (
        NOTIFICATIONS,
        "message_id text, channel text, state text, reason text, tries whole, at instant, alert text, alert_state text, severity text, "
        "summary text, entities texts, change_ids texts, alert_ids texts",
        ("m1", "pager", "failed", None, 2, NOON, "hot", "firing", "page", "it is hot", ["oven"], ["c1", "c2"], ["e1"]),
    ),
    (DEAD_LETTERS, "message_id text, channel text, at instant, message text", ("m1", "pager", NOON, "{}")),
    (
        RUNS,
        "job text, due_at instant, started_at instant, seconds real, outcome text, snapshot_id whole, reason text",
        ("nightly", NOON, NOON, 1.5, "done", None, None),
    ),
    (NOTES, "begins_at instant, ends_at instant, text text, author text, noted_at instant", (NOON, NOON, "a test", "kim", NOON)),
    (TICKS, "stream text, event_time instant, ticked_at instant", ("kitchen", NOON, NOON)),
    (
        GAPS,
        "source text, topic text, partition whole, first_offset whole, last_offset whole, bronze_batch whole, found_at instant",
        ("plant", "events", 0, 4, None, 7, NOON),
    ),
    (
        MAINTENANCE,
        "at instant, table text, files whole, compacted whole, removed whole, freed_bytes whole, log_entries whole",
        (NOON, "silver.readings", 9, 8, 7, 6, 5),
    ),
    (
        SNAPSHOTS,
        "snapshot_id whole, at instant, generation whole, bronze_batch whole, versions wholes_by_name, closed_until instants_by_name",
        (3, NOON, 1, 12, {"silver.readings": 4}, {"kitchen": NOON}),
    ),
    (
        GENERATIONS,
        "swap whole, generation whole, at instant, cause text, bronze_batch whole, places wholes_by_name",
        (1, 2, NOON, "a replay", None, {"silver/readings": 2}),
    ),
    (
        MARTS,
        "build whole, at instant, snapshot_id whole, generation whole, versions wholes_by_name, reached wholes_by_name, basis text",
        (0, NOON, 3, 1, {"marts.hourly": 0}, {}, "of now"),
    ),
    (
        RELEASES,
        "table_name text, table_id text, version whole, after_version whole, reason text, released_by text, released_at instant, "
        "failed texts",
        ("silver.readings", "i1", 2, -1, "it is known", "kim@plant", NOON, ["nulls"]),
    ),
]


@pytest.mark.parametrize(("log", "columns", "cells"), TABLES, ids=[log.table for log, *_ in TABLES])
def test_a_table_of_an_earlier_lake_is_read_and_appended_to(log: Log[Any], columns: str, cells: tuple[Any, ...], tmp_path: Path) -> None:
    types = dict(column.split() for column in columns.split(", "))
    schema, lake = pa.schema([(name, TYPES[kind]) for name, kind in types.items()]), Location(tmp_path)
    row = dict(zip(types, cells, strict=True))
    assert log.schema == schema
    write_deltalake(log.path(lake).local, pa.Table.from_pylist([row], schema))
    (record,) = log.rows(lake)
    assert {name: _plain(getattr(record, name)) for name in row} == row
    log.append(lake, [record])
    assert log.rows(lake) == [record, record]
    assert log.newest(lake, 1) == [record]


def _plain(value: Any) -> Any:
    """A record holds tuples and records where a table has lists and structs."""
    if isinstance(value, Hours):
        return {name: _plain(inner) for name, inner in vars(value).items()}
    return [*value] if isinstance(value, tuple) else value
