"""What the view of devices shows: those that were seen last the longest ago, and of one what became of what it sent, and its clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestration.storage.delta import is_table, literal
from orchestration.storage.registry import current, versions
from orchestration.storage.tables import LakeStore
from orchestration.web.queries import Look
from orchestration.web.spans import Span, instant, span_of

MOST = 200
TABLES = {"readings": "silver.readings", "late": "silver.late", "duplicates": "silver.duplicates", "quarantined": "silver.quarantine"}
OF_TABLE = """
  select device_id, '{kind}' as kind, count(*) as rows, max(event_time) as measured_at, max(ingested_at) as came_at,
    median(epoch(ingested_at) - epoch(event_time)) as delay
  from {table} where ingested_at > {start} and ingested_at <= {end} and device_id is not null{of_device} group by all
"""
BY_METRIC = """
  select metric, count(*) as rows, arg_max(value, event_time) as value, max(event_time) as measured_at
  from silver.readings where device_id = {device} and ingested_at > {start} and ingested_at <= {end} group by all order by metric
"""
FLEET = """
  select median(delay) as delay from (select median(epoch(ingested_at) - epoch(event_time)) as delay
    from silver.readings where ingested_at > {start} and ingested_at <= {end} group by device_id)
"""


@dataclass(frozen=True)
class OfDevice:
    """What came of a device in the span. `counts`: by kind of TABLES; `seen_at`: when its newest row came, None for none.

    `delay`: seconds from measurement to arrival, the median of its readings.
    """

    name: str
    groups: Sequence[str]
    zone: str | None
    is_known: bool
    counts: Mapping[str, int]
    seen_at: datetime | None = None
    measured_at: datetime | None = None
    delay: float | None = None


@dataclass(frozen=True)
class Devices:
    """`all`: at most MOST of `count`, those first that were not seen for the longest. `device` None: none is chosen.

    `fleet_delay`: the median of all devices. `registered`: versions of the device in the registry, the newest first.
    """

    at: datetime
    span: Span | None
    looked_for: str
    all: Sequence[OfDevice] = ()
    count: int = 0
    device: OfDevice | None = None
    fleet_delay: float | None = None
    metrics: Sequence[Mapping[str, Any]] = ()
    registered: Sequence[Mapping[str, Any]] = ()

    @property
    def ahead(self) -> float | None:
        """By how many seconds its clock is ahead of the fleet's, where both send as soon as they measure."""
        if self.device is None or self.device.delay is None or self.fleet_delay is None:
            return None
        return self.fleet_delay - self.device.delay


def devices(look: Look) -> Devices:
    """`device`; or `find`, a part of names; and a span that ends when the newest reading came."""
    store = LakeStore(look.conf)
    tables = {kind: name for kind, name in TABLES.items() if is_table(store.table_path(name))}
    name, part = look.asked.get("device", ""), look.asked.get("find", "")
    came = " union all ".join(f"select max(ingested_at) as came_at from {table}" for table in tables.values())
    newest = look.queries.rows(f"select max(came_at) as came_at from ({came})")[0]["came_at"] if "readings" in tables else None
    if newest is None:
        return Devices(look.now, None, part)
    span = span_of(look.asked, newest, "day")
    of = {"start": instant(span.start), "end": instant(span.end), "of_device": f" and device_id = {literal(name)}" if name else ""}
    counted = look.queries.rows(" union all ".join(OF_TABLE.format(kind=kind, table=table, **of) for kind, table in tables.items()))
    found = _of_devices(current(look.conf.lake), counted)
    if not name:
        chosen = [device for device in found if part.lower() in device.name.lower()]
        return Devices(look.now, span, part, chosen[:MOST], len(chosen))
    device = next((of for of in found if of.name == name), OfDevice(name, (), None, False, {}))
    metrics = look.queries.rows(BY_METRIC.format(device=literal(name), **of))
    delay = look.queries.rows(FLEET.format(**of))[0]["delay"]
    registered = sorted((row for row in versions(look.conf.lake) if row["device_id"] == name), key=lambda row: row["registered_at"])
    return Devices(look.now, span, part, (), 1, device, delay, metrics, registered[::-1])


def _of_devices(registered: Sequence[Mapping[str, Any]], counted: Sequence[Mapping[str, Any]]) -> list[OfDevice]:
    """Those seen longest ago first; those that were not seen at all before them."""
    known = {row["device_id"]: row for row in registered}
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in counted:
        rows.setdefault(row["device_id"], []).append(row)
    found = [_of_device(name, known.get(name), rows.get(name, ())) for name in known | rows]
    return sorted(found, key=lambda of: (of.seen_at is not None, of.seen_at, of.name))


def _of_device(name: str, registered: Mapping[str, Any] | None, rows: Sequence[Mapping[str, Any]]) -> OfDevice:
    counts = {row["kind"]: row["rows"] for row in rows}
    seen_at = max((row["came_at"] for row in rows), default=None)
    of_readings = next((row for row in rows if row["kind"] == "readings"), {"measured_at": None, "delay": None})
    groups, zone, is_known = (registered["groups"], registered["zone"], registered["is_known"]) if registered else ((), None, False)
    return OfDevice(name, groups or (), zone, is_known, counts, seen_at, of_readings["measured_at"], of_readings["delay"])
