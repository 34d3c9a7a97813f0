"""Which rows of a table came since a version, by the ends of the files that hold them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from orchestration.location import Location
from orchestration.storage.commit import append_rows
from orchestration.storage.table_changes import MINUTE, changes
from orchestration.utc import to_micros
from tests.rows import at

NOON = at("2026-01-05T12:00:00")
COLUMNS = pa.schema([("window_end", pa.timestamp("us", "UTC")), ("value", pa.float64())])


def ends_of(folder: Path, *ends: datetime) -> list[tuple[int, int]]:
    """Spans of the ends of windows that a commit adds to a table."""
    path = Location(folder)
    append_rows(path, COLUMNS.empty_table(), "flow", 0)
    append_rows(path, pa.Table.from_pylist([{"window_end": end, "value": 1.0} for end in ends], COLUMNS), "flow", 1)
    return [found["window_end"] for found in changes(path, 1, 2, datetime.now(UTC) + timedelta(hours=1))]


def test_of_windows_far_apart_the_minutes_count_and_not_what_lies_between(tmp_path: Path) -> None:
    near, old, first = NOON + timedelta(seconds=90), NOON - timedelta(days=400), at("1969-12-31T23:59:30")
    assert ends_of(tmp_path / "near", NOON, near) == [(to_micros(NOON), to_micros(near))]
    minutes = [at("1969-12-31T23:59:00"), old, NOON, NOON + timedelta(minutes=1)]
    assert ends_of(tmp_path / "far", NOON, near, old, first) == [(to_micros(minute), to_micros(minute) + MINUTE - 1) for minute in minutes]
