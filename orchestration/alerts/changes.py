"""Rows of gold.alerts, as the newest snapshot has them: what is new since a version, what was last, and what was."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, TypedDict, cast

import pyarrow as pa
import pyarrow.parquet as pq

from gold.schema import ALERTS
from orchestration.location import Location
from orchestration.storage.delta import added, ask, instant, log_of, open_table, python_rows, table_id
from orchestration.storage.generations import numbered
from orchestration.storage.positions import ALERTS as TABLE
from orchestration.storage.positions import judged_ahead
from orchestration.storage.snapshots import find_snapshot
from orchestration.utc import to_micros

COLUMNS = ("alert", "entity", "state", "severity", "changed_at", "known_at", "value", "summary", "alert_id", "is_past")
"""Without lineage."""
READ = (*COLUMNS, "previous_state")


class LastChange(TypedDict):
    """The last change of an entity under an alert. `begun_at`: when the entity left normal, and `begun_known_at`: when that was known."""

    alert: str
    entity: str
    state: str
    previous_state: str
    severity: str
    changed_at: datetime
    known_at: datetime
    value: float | None
    summary: str
    alert_id: str
    begun_at: datetime
    begun_known_at: datetime


def last_change(row: Mapping[str, Any], before: LastChange | None) -> LastChange:
    """Return a row of ALERTS as the last change of its entity, by the one before it; the row may say itself when its episode began."""
    is_same = before is not None and before["alert_id"] == row["alert_id"]
    first = before if before and is_same else {"begun_at": row["changed_at"], "begun_known_at": row["known_at"]} | dict(row)
    columns = dict(row) | {"begun_at": first["begun_at"], "begun_known_at": first["begun_known_at"]}
    return cast("LastChange", {name: columns[name] for name in LastChange.__annotations__})


@dataclass(frozen=True)
class PinnedAlerts:
    """The table at a version. `table_id`: another one after a replay."""

    location: Location
    version: int
    table_id: str

    def all(self) -> list[dict[str, Any]]:
        """READ of all rows, in the order in which they were known."""
        return _in_order(ask(f"select {', '.join(READ)} from alerts", {"alerts": open_table(self.location, self.version)}).read_all())

    def since(self, version: int) -> list[dict[str, Any]] | None:
        """The same of rows that versions after it added; None where the log, or a file, is gone."""
        versions = range(version + 1, self.version + 1)
        if not all(log_of(self.location, number).exists() for number in versions):
            return None
        files = [self.location / add["path"] for number in versions for add in added(self.location, number) if add["dataChange"]]
        try:
            pieces = [_read(file) for file in files]
        except FileNotFoundError:  # compacted, and then removed
            return None
        schema = pa.schema([ALERTS.field(name) for name in READ])
        return _in_order(pa.concat_tables([schema.empty_table(), *(_cast(piece, schema) for piece in pieces)]))

    def newest(self) -> list[LastChange]:
        """Return the last change of each entity under each alert, without past episodes. Reads what is new since a call."""
        before = _NEWEST.get(self.location)
        rows = self.since(before.version) if before and before.table_id == self.table_id and before.version <= self.version else None
        newest = {} if before is None or rows is None else {**before.rows}
        for row in self._last_rows() if rows is None else rows:
            if not row["is_past"]:
                key = row["alert"], row["entity"]
                newest[key] = last_change(row, newest.get(key))
        _NEWEST[self.location] = _Newest(self.table_id, self.version, newest)
        return [*newest.values()]

    def _last_rows(self) -> list[dict[str, Any]]:
        query = f"""select {", ".join(READ)}, begun_at, begun_known_at from (
            select *, min(changed_at) over (partition by alert_id) as begun_at,
            min(known_at) over (partition by alert_id) as begun_known_at, max(known_at) over (partition by alert, entity) as newest_at
            from alerts where is_past is not true
        ) where known_at = newest_at"""
        return _in_order(ask(query, {"alerts": open_table(self.location, self.version)}).read_all())

    def history(self, since: datetime, most: int) -> list[dict[str, Any]]:
        """The newest changes, the latest first."""
        query = f"select * from alerts where changed_at >= {instant(to_micros(since))} order by changed_at desc, entity limit {most}"
        return python_rows(ask(query, {"alerts": open_table(self.location, self.version)}).read_all())


@dataclass(frozen=True)
class _Newest:
    """The last changes in a version of the table `table_id`, by alert and entity."""

    table_id: str
    version: int
    rows: dict[tuple[str, str], LastChange]


_NEWEST: dict[Location, _Newest] = {}


def pinned_alerts(lake: Location) -> PinnedAlerts | None:
    """Return the table as the newest snapshot has it, or as it was judged ahead of that; None where no snapshot has it."""
    snapshot, ahead = find_snapshot(lake), judged_ahead(lake).read()
    version = snapshot.versions.get(TABLE) if snapshot else None
    if snapshot is None or version is None:
        return None
    if ahead and ahead.generation == snapshot.generation:
        version = max(version, ahead.version)
    location = numbered(lake, snapshot.generation).table(lake, TABLE)
    return PinnedAlerts(location, version, table_id(location))


def _in_order(rows: pa.Table) -> list[dict[str, Any]]:
    """Sort by when it was known, then by time; changes of an entity at one instant follow each other from state to state."""
    key = itemgetter("known_at", "changed_at", "alert", "entity")
    return [row for _, at_once in groupby(sorted(python_rows(rows), key=key), key) for row in _chained([*at_once])]


def _read(file: Location) -> pa.Table:
    with file.open_input() as source:
        return pq.read_table(source)


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Files of earlier versions lack columns."""
    columns = [rows[field.name] if field.name in rows.column_names else pa.nulls(len(rows), field.type) for field in schema]
    return pa.table(columns, schema.names).cast(schema)


def _chained(left: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    led_to = [row["state"] for row in left if row["state"] != row["previous_state"]]
    state = next((row["previous_state"] for row in left if row["previous_state"] not in led_to), left[0]["previous_state"])
    while left:
        follows = [row for row in left if row["previous_state"] == state]
        row = max(follows or left, key=lambda row: row["state"] == state)  # a higher severity comes before what leaves the state
        left.remove(row)
        state = row["state"]
        yield row
