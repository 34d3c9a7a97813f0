"""The view of devices: those that were last seen the longest ago; for one device what became of its events, and its clock."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any

from orchestration.storage.delta import is_table, literal
from orchestration.storage.registry import NEWEST, versions
from orchestration.storage.tables import LakeStore
from orchestration.web.charts import PARTS, THINNED, Band, Chart, Points, bands_of, broken, limits_of
from orchestration.web.pages import at
from orchestration.web.queries import ViewRequest
from orchestration.web.spans import Span, span_of

MOST, MOST_CHARTS = 200, 20
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
  from newest full join seen using (device_id) order by coalesce(is_known, false) desc, seen_at nulls first, name limit {most}
"""
SUM = "coalesce(sum(rows) filter (kind = '{kind}'), 0) as {kind}"
BY_METRIC = """
  select metric, count(*) as rows, arg_max(value, event_time) as value, max(event_time) as measured_at
  from silver.readings where device_id = {device} and ingested_at > {start} and ingested_at <= {end} group by all order by metric
"""
READINGS = """
  select metric, epoch(event_time) as x, value from silver.readings
  where device_id = {device} and value is not null and {moment} > {start} and {moment} <= {end}
"""
ASIDE = """
  select coalesce(event_time, ingested_at) as at, metric, broken_rules[1] as rule from silver.quarantine
  where device_id = {device} and {moment} > {start} and {moment} <= {end} order by ingested_at desc limit 50
"""
STATES = """
  select changed_at as at, flow, state from gold.states
  where device_id = {device} and changed_at >= {first} and changed_at <= {last} order by changed_at desc limit 50
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
    BY_METRIC. `registered`: versions of the device in the registry, the newest first. `charts`: of its readings in the span.
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
    charts: Sequence[Chart] = ()

    @property
    def ahead(self) -> float | None:
        """Return the seconds by which its clock is ahead of the fleet's, if both send as soon as they measure."""
        return None if self.delay is None or self.fleet_delay is None else self.fleet_delay - self.delay

    @property
    def units(self) -> dict[str, str | None]:
        return {chart.metric.name: chart.metric.unit for chart in self.charts}


def devices(request: ViewRequest) -> Devices:
    """`device`; or `find`, a part of names; and a span that ends when the newest row came."""
    store = LakeStore(request.conf)
    request = replace(request, tables=", ".join(("silver.devices", "gold.alerts", "gold.states", *TABLES.values())))
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
    charts = _charts(request, name, values | {"moment": "event_time" if not span.name else "ingested_at"})
    return Devices(request.now, span, part, (), 1, device, delays["device"], delays["fleet"], metrics, registered[::-1], charts)


def _charts(request: ViewRequest, name: str, values: Mapping[str, str]) -> list[Chart]:
    """Draw each metric over event time, with what happened to the device. `moment` of the values: the column that is in the span."""
    lines: dict[str, list[tuple[float, float | None]]] = defaultdict(list)
    counts: dict[str, int] = {}
    for row in request.rows(THINNED.format(rows=READINGS.format(**values), line="metric", parts=PARTS)):
        lines[row["metric"]].append((row["x"], row["value"]))
        counts[row["metric"]] = row["points"]
    if not lines:
        return []
    ends = [point[0] for points in lines.values() for point in (points[0], points[-1])]
    first, last = at(min(ends)), at(max(ends))
    bands = [*bands_of(request, [name], first, last), *_marks(request, values, first, last)]
    drawn = []
    for metric in (request.conf.metrics[metric] for metric in [*lines][:MOST_CHARTS] if metric in request.conf.metrics):
        thinned = counts[metric.name] if counts[metric.name] > 2 * PARTS else 0
        points = lines[metric.name] if thinned or metric.is_state else [*broken(lines[metric.name], _usual_gap(lines[metric.name]))]
        line = [(name, "window", points)]
        drawn.append(Chart(f"device {name}", metric, line, thinned, bands, limits_of(request.conf, metric, ("reading",)), of_readings=True))
    return drawn


def _marks(request: ViewRequest, values: Mapping[str, str], first: datetime, last: datetime) -> Iterator[Band]:
    """Yield what was set aside, and changes of the states that flows keep of the device."""
    store, flows = LakeStore(request.conf), request.conf.flows
    if is_table(store.table_path("silver.quarantine")):
        for row in request.rows(ASIDE.format(**values)):
            yield Band(row["at"], row["at"], f"{row['rule']} (quarantine)", "warning", row["metric"])
    if "gold.states" in request.conf.tables_of_incrementals and is_table(store.table_path("gold.states")):
        for row in request.rows(STATES.format(**values, first=literal(first), last=literal(last))):
            if row["flow"] in flows:
                yield Band(row["at"], row["at"], row["state"], "info", next(iter(flows[row["flow"]].metrics), None))


def _usual_gap(points: Points) -> float:
    """Return three times the usual time between two readings, in seconds."""
    return 3 * median([following - x for (x, _), (following, _) in pairwise(points)] or [0.0])
