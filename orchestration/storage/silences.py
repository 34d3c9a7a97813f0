"""Silences: rows of ops.silences, append only. The newest row of a silence holds, so a later one ends it.

A silence is written in one row, by any process.
"""

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from gold.alert_spec import Hours
from gold.silences import Silence
from orchestration.location import Location
from orchestration.storage.commit import append_shared
from orchestration.storage.delta import INSTANT, path_of, rows_of

TABLE = "ops.silences"
_HOURS = pa.struct([("zone", pa.string()), ("days", pa.list_(pa.int64())), ("begin", pa.int64()), ("end", pa.int64())])
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("silence_id", "alert", "entity")),
        *(("begins_at", INSTANT), ("ends_at", INSTANT), ("hours", _HOURS)),
        *(("author", pa.string()), ("reason", pa.string()), ("noted_at", INSTANT)),
    ]
)
"""Grain: one silence as of `noted_at`. `alert`, `entity`: names with the wildcards * and ?. `hours`: of a week in which it holds, null for
always; days from 0, Monday, and minutes of a local day. Instants in UTC."""


@dataclass(frozen=True)
class NotedSilence:
    """Who was told of it, why and when."""

    silence: Silence
    author: str
    reason: str
    noted_at: datetime


def append_silence(lake: Location, noted: NotedSilence) -> None:
    row = asdict(noted.silence) | {name: getattr(noted, name) for name in ("author", "reason", "noted_at")}
    append_shared(path_of(lake, TABLE), pa.Table.from_pylist([row], SCHEMA))


def end_silence(lake: Location, noted: NotedSilence, author: str, now: datetime) -> None:
    """From now on it does not hold."""
    append_silence(lake, NotedSilence(replace(noted.silence, ends_at=now), author, noted.reason, now))


def silences(lake: Location) -> list[NotedSilence]:
    """The newest row of each, also of those that are over."""
    newest = {row["silence_id"]: row for row in sorted(rows_of(path_of(lake, TABLE)), key=lambda row: row["noted_at"])}
    return [_as_noted(row) for row in newest.values()]


def _as_noted(row: dict[str, Any]) -> NotedSilence:
    hours = row["hours"] and Hours(**row["hours"] | {"days": tuple(row["hours"]["days"])})
    of_silence = {name: row[name] for name in ("silence_id", "alert", "entity", "begins_at", "ends_at")}
    return NotedSilence(Silence(**of_silence, hours=hours), row["author"], row["reason"], row["noted_at"])
