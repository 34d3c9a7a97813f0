"""Logs go on in lakes that were made before: a table has the columns that it had, and its rows are read as they were."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gold.alert_spec import Hours
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

AT, TEXT, WHOLE = pa.timestamp("us", "UTC"), pa.string(), pa.int64()
TEXTS, WHOLE_BY_NAME = pa.list_(TEXT), pa.map_(TEXT, WHOLE)
HOURS = pa.struct([("zone", TEXT), ("days", pa.list_(WHOLE)), ("begin", WHOLE), ("end", WHOLE)])
NOON = at("12:00:00")
Columns = dict[str, tuple[pa.DataType, Any]]
TABLES: list[tuple[Log[Any], Columns]] = [
    (ACKNOWLEDGEMENTS, {"alert_id": (TEXT, "e1"), "author": (TEXT, "kim"), "noted_at": (AT, NOON), "note": (TEXT, "on my way")}),
    (
        SILENCES,
        {
            "silence_id": (TEXT, "s1"),
            "alert": (TEXT, "*"),
            "entity": (TEXT, "oven"),
            "begins_at": (AT, NOON),
            "ends_at": (AT, NOON),
            "hours": (HOURS, {"zone": "UTC", "days": [5, 6], "begin": 0, "end": 90}),
            "author": (TEXT, "kim"),
            "reason": (TEXT, "no shift"),
            "noted_at": (AT, NOON),
        },
    ),
    (
        NOTIFICATIONS,
        {
            "message_id": (TEXT, "m1"),
            "channel": (TEXT, "pager"),
            "state": (TEXT, "failed"),
            "reason": (TEXT, None),
            "tries": (WHOLE, 2),
            "at": (AT, NOON),
            "alert": (TEXT, "hot"),
            "alert_state": (TEXT, "firing"),
            "severity": (TEXT, "page"),
            "summary": (TEXT, "it is hot"),
            "entities": (TEXTS, ["oven"]),
            "change_ids": (TEXTS, ["c1", "c2"]),
        },
    ),
    (DEAD_LETTERS, {"message_id": (TEXT, "m1"), "channel": (TEXT, "pager"), "at": (AT, NOON), "message": (TEXT, "{}")}),
    (
        RUNS,
        {
            "job": (TEXT, "nightly"),
            "due_at": (AT, NOON),
            "started_at": (AT, NOON),
            "seconds": (pa.float64(), 1.5),
            "outcome": (TEXT, "done"),
            "snapshot_id": (WHOLE, None),
            "reason": (TEXT, None),
        },
    ),
    (
        NOTES,
        {"begins_at": (AT, NOON), "ends_at": (AT, NOON), "text": (TEXT, "a test"), "author": (TEXT, "kim"), "noted_at": (AT, NOON)},
    ),
    (TICKS, {"stream": (TEXT, "kitchen"), "event_time": (AT, NOON), "ticked_at": (AT, NOON)}),
    (
        GAPS,
        {
            "source": (TEXT, "plant"),
            "topic": (TEXT, "events"),
            "partition": (WHOLE, 0),
            "first_offset": (WHOLE, 4),
            "last_offset": (WHOLE, None),
            "bronze_batch": (WHOLE, 7),
            "found_at": (AT, NOON),
        },
    ),
    (
        MAINTENANCE,
        {
            "at": (AT, NOON),
            "table": (TEXT, "silver.readings"),
            "files": (WHOLE, 9),
            "compacted": (WHOLE, 8),
            "removed": (WHOLE, 7),
            "freed_bytes": (WHOLE, 6),
            "log_entries": (WHOLE, 5),
        },
    ),
    (
        SNAPSHOTS,
        {
            "snapshot_id": (WHOLE, 3),
            "at": (AT, NOON),
            "generation": (WHOLE, 1),
            "bronze_batch": (WHOLE, 12),
            "versions": (WHOLE_BY_NAME, {"silver.readings": 4}),
            "closed_until": (pa.map_(TEXT, AT), {"kitchen": NOON}),
        },
    ),
    (
        GENERATIONS,
        {
            "swap": (WHOLE, 1),
            "generation": (WHOLE, 2),
            "at": (AT, NOON),
            "cause": (TEXT, "a replay"),
            "bronze_batch": (WHOLE, None),
            "places": (WHOLE_BY_NAME, {"silver/readings": 2}),
        },
    ),
    (
        MARTS,
        {
            "build": (WHOLE, 0),
            "at": (AT, NOON),
            "snapshot_id": (WHOLE, 3),
            "generation": (WHOLE, 1),
            "versions": (WHOLE_BY_NAME, {"marts.hourly": 0}),
            "reached": (WHOLE_BY_NAME, {}),
            "basis": (TEXT, "of now"),
        },
    ),
    (
        RELEASES,
        {
            "table_name": (TEXT, "silver.readings"),
            "table_id": (TEXT, "i1"),
            "version": (WHOLE, 2),
            "after_version": (WHOLE, -1),
            "reason": (TEXT, "it is known"),
            "released_by": (TEXT, "kim@plant"),
            "released_at": (AT, NOON),
            "failed": (TEXTS, ["nulls"]),
        },
    ),
]


@pytest.mark.parametrize(("log", "columns"), TABLES, ids=[log.table for log, _ in TABLES])
def test_a_table_of_an_earlier_lake_is_read_and_appended_to(log: Log[Any], columns: Columns, tmp_path: Path) -> None:
    schema, lake = pa.schema([(name, kind) for name, (kind, _) in columns.items()]), Location(tmp_path)
    row = {name: value for name, (_, value) in columns.items()}
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
