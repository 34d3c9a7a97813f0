"""What people note about a span of time: rows of ops.notes, which the live page alone writes."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from orchestration.location import Location
from orchestration.storage.commit import append_shared
from orchestration.storage.delta import INSTANT, path_of, rows_of

TABLE = "ops.notes"
SCHEMA = pa.schema([("begins_at", INSTANT), ("ends_at", INSTANT), ("text", pa.string()), ("author", pa.string()), ("noted_at", INSTANT)])


@dataclass(frozen=True)
class Note:
    """Grain: one note. It is about the time from `begins_at` to `ends_at`; instants in UTC. Append only."""

    begins_at: datetime
    ends_at: datetime
    text: str
    author: str
    noted_at: datetime


def append_note(lake: Location, note: Note) -> None:
    append_shared(path_of(lake, TABLE), pa.Table.from_pylist([asdict(note)], SCHEMA))


def notes_between(lake: Location, start: datetime, end: datetime) -> list[dict[str, Any]]:
    """Those that are about a part of this span, the newest first."""
    rows = [row for row in rows_of(path_of(lake, TABLE)) if row["begins_at"] <= end and row["ends_at"] >= start]
    return sorted(rows, key=lambda row: row["begins_at"], reverse=True)
