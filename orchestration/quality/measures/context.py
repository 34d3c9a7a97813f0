"""The context of measures: the tables of one run, intermediate tables that several measures need, and their outcomes.

Hours count from 1970, in UTC. Everything is computed from the tables, so a snapshot of last week gets the results of last week. Only the
newest HORIZON_HOURS of event time are read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

from orchestration.engine.lake import Lake
from orchestration.quality.outcome import Outcome, shorten, text
from orchestration.quality.store import copy_rows
from orchestration.storage.registry import ALWAYS, current
from orchestration.utc import EPOCH

HORIZON_HOURS = 216
"""A day, the week before it, and a day for late data."""
NAMED = 5
"""Offenders that are named; how many more there are is counted."""
KEYS = ("device_id", "group_name", "metric", "rule", "entity", "feature", "bronze_batch")
"""Columns of an offender that are shown beside its description."""

Row = Mapping[str, Any]

# Late rows count: a device whose clock is behind has no others.
PROFILE = """
  create or replace temp table profile as
  with measured as (
    select device_id, metric, event_time, value, ingested_at from "{readings}"
    union all select device_id, metric, event_time, value, ingested_at from "{late}"
  )
  select device_id, metric, epoch_us(event_time) // 3600000000 as hour, epoch_us(ingested_at) // 3600000000 as arrived,
    count(*) as n, min(value) as lo, max(value) as hi, sum(value) as total,
    min(epoch_us(ingested_at) - epoch_us(event_time)) / 1e6 as lag_seconds, max(epoch_us(event_time)) / 1e6 as last_seconds
  from measured where event_time >= date_trunc('hour', (select max(event_time) from "{readings}")) - to_hours({horizon}) group by all
"""
# A gap lies between two hours with readings, so the current silence is not part of it. An absence counts only hours in which other devices
# sent readings: a rest of the whole plant does not count as a rest of each device.
ACTIVITY = """
  create or replace temp table activity as
  with heard as (
    select distinct 'device' as kind, device_id as name, hour from profile
    union all select distinct 'group', group_name, hour from profile join members using (device_id)
    union all select distinct 'all', 'all', hour from profile
  ),
  gaps as (
    select *, hour - lag(hour) over (partition by kind, name order by hour) as gap,
      nth - lag(nth) over (partition by kind, name order by hour) as absence
    from heard join (select hour, row_number() over (order by hour) as nth from heard where kind = 'all') using (hour)
  )
  select kind, name, count(*) as hours, max(hour) as last_hour, coalesce(max(gap), 0) as longest_gap,
    (select max(nth) from gaps) - max(nth) as absent, coalesce(max(absence), 0) as longest_absence
  from gaps group by kind, name
"""


@dataclass(frozen=True)
class Context:
    """`view_of`: the view of a table by its SQL name. `now`: UTC, of a snapshot when it was taken. `is_kept`: may pin a new reference."""

    store: duckdb.DuckDBPyConnection
    lake: Lake
    now: datetime
    view_of: Callable[[str], str]
    is_kept: bool
    ledger: pa.Table | None
    """ops.ledger, read before any table that it counts, so that the tables may hold more than it, but not less."""

    def ask(self, sql: str, **parameters: Any) -> list[Row]:
        result = self.store.sql(sql, params=parameters or None)
        return [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]

    def needs(self, *tables: str) -> None:
        """Create these intermediate tables once: profile, members, activity."""
        for table in tables:
            getattr(self, table)

    @cached_property
    def profile(self) -> str:
        """A table; grain: device, metric, hour of event time, hour of arrival."""
        views = {name: self.view_of(f"silver.{name}") for name in ("readings", "late")}
        self.store.execute(PROFILE.format(horizon=HORIZON_HOURS, **views))
        return "profile"

    @cached_property
    def newest_hour(self) -> int | None:
        """The hour of the newest reading, which is not over yet; None without readings."""
        (newest,) = self.ask(f"select max(hour) as hour from {self.profile}")
        return None if newest["hour"] is None else int(newest["hour"])

    @cached_property
    def hours(self) -> int:
        """From the oldest reading within the horizon to the newest; 0 without readings."""
        (length,) = self.ask(f"select coalesce(max(hour) - min(hour), 0) as hours from {self.profile}")
        return int(length["hours"])

    @cached_property
    def devices(self) -> list[Row]:
        """Known devices with device_id, zone, groups and registered_at: of the registry, or of conf before the first registration."""
        registered: list[Row] = [device for device in current(self.lake.conf.lake) if device["is_known"]]
        return registered or [
            {"device_id": device.device_id, "zone": device.zone, "groups": list(device.groups)}
            | {"registered_at": ALWAYS, "moved_at": device.since}
            for device in self.lake.conf.devices.values()
        ]

    @cached_property
    def members(self) -> str:
        """A table; grain: a device in a group."""
        rows = [{"device_id": device["device_id"], "group_name": group} for device in self.devices for group in device["groups"]]
        schema = pa.schema([("device_id", pa.string()), ("group_name", pa.string())])
        copy_rows(self.store, "members", pa.Table.from_pylist(rows, schema))
        return "members"

    @cached_property
    def activity(self) -> str:
        """A table; grain: a device, a group (`kind`), or all. Gaps and absences in hours, 1 where no hour is without readings."""
        self.needs("profile", "members")
        self.store.execute(ACTIVITY)
        return "activity"


def outcome_of(offenders: Sequence[Row], describe: Callable[[Row], str], passed: str) -> Outcome:
    """Failed with the first offenders described; without offenders passed, with the text `passed`."""
    if not offenders:
        return Outcome(True, passed)
    more = f"; and {len(offenders) - NAMED:,} more" if len(offenders) > NAMED else ""
    # The name of a device may be very long.
    samples = tuple({"what": shorten(describe(row))} | {name: text(row[name]) for name in KEYS if name in row} for row in offenders[:NAMED])
    return Outcome(False, "; ".join(sample["what"] for sample in samples) + more, samples=samples)


def not_checked(reason: str) -> Outcome:
    """No verdict, because data is missing."""
    return Outcome(None, f"not checked: {reason}")


def share(part: float) -> str:
    return f"{100 * part:.3g} %"


def hour(number: int) -> str:
    """Hours since 1970, as a time in UTC."""
    return f"{EPOCH + timedelta(hours=number):%Y-%m-%d %H:00Z}"


def span(seconds: float) -> str:
    """A duration in the largest unit that it fills."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:,.3g} s"
