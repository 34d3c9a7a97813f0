"""The view of devices: those that were last seen the longest ago; for one device what became of its events, and its clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from orchestration.storage.delta import is_table, literal
from orchestration.storage.registry import NEWEST, versions
from orchestration.storage.tables import LakeStore
from orchestration.web.queries import ViewRequest
from orchestration.web.spans import Span, span_of

MOST = 200
TABLES = {"readings": "silver.readings", "late": "silver.late", "duplicates": "silver.duplicates", "quarantined": "silver.quarantine"}
OF_TABLE = """
  select device_id, '{kind}' as kind, count(*) as rows, max(event_time) as measured_at, max(ingested_at) as came_at
  from {table} where ingested_at > {start} and ingested_at <= {end} and device_id is not null and {which} group by all
"""
ALL = """
  with newest as (from ({newest}) where {which}),
  seen as (select device_id, max(came_at) as seen_at, max(measured_at) filter (kind = 'readings') as measured_at, {sums}
    from ({counted}) group by device_id)
  select coalesce(newest.device_id, seen.device_id) as name, groups, zone, coalesce(is_known, false) as is_known,
    seen.* exclude (device_id), count(*) over () as devices
  from newest full join seen using (device_id) order by seen_at nulls first, name limit {most}
"""
SUM = "coalesce(sum(rows) filter (kind = '{kind}'), 0) as {kind}"
BY_METRIC = """
  select metric, count(*) as rows, arg_max(value, event_time) as value, max(event_time) as measured_at
  from silver.readings where device_id = {device} and ingested_at > {start} and ingested_at <= {end} group by all order by metric
"""
DELAYS = """
  select median(delay) as fleet, max(delay) filter (device_id = {device}) as device
  from (select device_id, median(epoch(ingested_at) - epoch(event_time)) as delay
    from silver.readings where ingested_at > {start} and ingested_at <= {end} group by device_id)
"""


@dataclass(frozen=True)
class Devices:
    """`all`: at most MOST of `count`, rows of ALL, those first that were not seen for the longest. `device` None: none is chosen.

    `delay`: seconds from measurement to arrival, the median of its readings; `fleet_delay`: the median of all devices. `metrics`: rows of
    BY_METRIC. `registered`: versions of the device in the registry, the newest first.
    """

    at: datetime
    span: Span | None
    looked_for: str
    all: Sequence[Mapping[str, Any]] = ()
    count: int = 0
    device: Mapping[str, Any] | None = None
    delay: float | None = None
    fleet_delay: float | None = None
    metrics: Sequence[Mapping[str, Any]] = ()
    registered: Sequence[Mapping[str, Any]] = ()

    @property
    def ahead(self) -> float | None:
        """Return the seconds by which its clock is ahead of the fleet's, if both send as soon as they measure."""
        return None if self.delay is None or self.fleet_delay is None else self.fleet_delay - self.delay


def devices(request: ViewRequest) -> Devices:
    """`device`; or `find`, a part of names; and a span that ends when the newest row came."""
    store = LakeStore(request.conf)
    request = replace(request, tables=", ".join(("silver.devices", *TABLES.values())))
    tables = {kind: name for kind, name in TABLES.items() if is_table(store.table_path(name))}
    name, part = request.params.get("device", ""), request.params.get("find", "")
    came = " union all ".join(f"select max(ingested_at) as came_at from {table}" for table in tables.values())
    newest = request.rows(f"select max(came_at) as came_at from ({came})")[0]["came_at"] if "readings" in tables else None
    if newest is None:
        return Devices(request.now, None, part)
    span = span_of(request.params, newest, "day")
    values = {"start": literal(span.start), "end": literal(span.end), "device": literal(name)}
    which = f"device_id = {literal(name)}" if name else f"contains(lower(device_id), {literal(part.lower())})"
    counted = " union all ".join(OF_TABLE.format(kind=kind, table=table, which=which, **values) for kind, table in tables.items())
    sums = ", ".join(SUM.format(kind=kind) for kind in TABLES)
    rows = request.rows(ALL.format(newest=NEWEST, which=which, counted=counted, sums=sums, most=MOST))
    if not name:
        return Devices(request.now, span, part, rows, rows[0]["devices"] if rows else 0)
    (delays,) = request.rows(DELAYS.format(**values))
    registered = sorted(versions(request.conf.lake, name), key=lambda row: row["registered_at"])
    device = next(iter(rows), dict.fromkeys(TABLES, 0) | {"name": name, "groups": (), "zone": None, "seen_at": None, "measured_at": None})
    metrics = request.rows(BY_METRIC.format(**values))
    return Devices(request.now, span, part, (), 1, device, delays["device"], delays["fleet"], metrics, registered[::-1])
