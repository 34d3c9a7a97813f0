"""What measures look at: the tables of one run, and what several of them need of these, computed once. Hours count from 1970, in UTC.

Everything is told from the tables as they are, so a snapshot of last week is judged as it would have been then. Only the newest
HORIZON_HOURS of event time are read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

from orchestration.engine.lake import Lake
from orchestration.quality.measures.findings import Row
from orchestration.storage.registry import current

HORIZON_HOURS = 216
"""A day, and the week before it, and what is still on its way."""

# Late rows were measured too: a device whose clock is behind has no others.
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
# A gap lies between two hours with readings, so the silence that is judged by it is no part of it. An absence counts only hours in which
# others were heard: a plant that rests as a whole makes no device one that often rests.
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
    """`shown` gives the view of a table by its SQL name. `now`: when a snapshot was taken, where one is judged.

    `is_kept`: whether what is measured for the first time may be pinned.
    """

    store: duckdb.DuckDBPyConnection
    lake: Lake
    now: datetime
    shown: Callable[[str], str]
    is_kept: bool
    ledger: pa.Table | None
    """ops.ledger, read before any table that it counts: what these hold beyond it is not accounted for yet."""

    def ask(self, sql: str, **parameters: Any) -> list[Row]:
        """Rows of a query."""
        found = self.store.sql(sql, params=parameters or None)
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]

    def needs(self, *tables: str) -> None:
        """Makes these, unless they are there: profile, members, activity."""
        for table in tables:
            getattr(self, table)

    @cached_property
    def profile(self) -> str:
        """A table; grain: device, metric, hour of event time, hour of arrival."""
        views = {name: self.shown(f"silver.{name}") for name in ("readings", "late")}
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
        (found,) = self.ask(f"select coalesce(max(hour) - min(hour), 0) as hours from {self.profile}")
        return int(found["hours"])

    @cached_property
    def members(self) -> str:
        """A table of which known device is in which group. Of the registry, or of conf where there is none yet."""
        registered = [each for each in current(self.lake.conf.lake) if each["is_known"]]
        known = registered or [{"device_id": each.device_id, "groups": each.groups} for each in self.lake.conf.devices.values()]
        rows = [{"device_id": each["device_id"], "group_name": group} for each in known for group in each["groups"]]
        schema = pa.schema([("device_id", pa.string()), ("group_name", pa.string())])
        self.store.register("arriving", pa.Table.from_pylist(rows, schema))
        self.store.execute("create or replace temp table members as from arriving")
        self.store.unregister("arriving")
        return "members"

    @cached_property
    def activity(self) -> str:
        """A table; grain: a device, a group (`kind`), or all. Gaps and absences in hours, 1 where no hour is without readings."""
        self.needs("profile", "members")
        self.store.execute(ACTIVITY)
        return "activity"
