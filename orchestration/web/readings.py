"""The readings behind a point of a chart: those of one window, and the raw event of each with its position."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from gold.windows.calendar import window_of
from orchestration.rendering import short
from orchestration.storage.delta import FIRST_INSTANT, is_table, literal
from orchestration.storage.tables import LakeStore
from orchestration.utc import from_iso
from orchestration.web.quarantine import LONGEST_PAYLOAD
from orchestration.web.queries import ViewRequest
from silver.metric import Metric

MOST, MOST_PAYLOADS = 500, 50
OF_WINDOW = """
  select event_time, value, source, ingested_at, bronze_batch, bronze_row, part, '{kind}' as kind from {table}
  where device_id = {device} and metric = {metric} and event_time >= {start} and event_time < {end}
"""
EVENTS = """
  select bronze_batch, bronze_row, position, header, payload from bronze.events
  where bronze_batch in {batches} and (bronze_batch, bronze_row) in ({events})
"""


@dataclass(frozen=True)
class Readings:
    """`rows`: by event time, at most MOST; those with `payload` None are beyond the first MOST_PAYLOADS."""

    at: datetime
    device: str
    metric: Metric | None
    start: datetime | None = None
    end: datetime | None = None
    rows: Sequence[Mapping[str, Any]] = ()


def readings(request: ViewRequest) -> Readings:
    """`device`, `metric`, and `end`, the end of a window as an instant or in seconds since 1970; the window is as long as the metric's."""
    device, metric = request.params.get("device", ""), request.conf.metrics.get(request.params.get("metric", ""))
    end = _instant(request.params.get("end", ""))
    if metric is None or end is None or end - FIRST_INSTANT < timedelta(seconds=metric.longest_seconds):
        return Readings(request.now, device, metric)
    start = end - timedelta(seconds=metric.longest_seconds)
    if metric.calendar is not None:
        start = datetime.fromtimestamp(window_of(metric.calendar, int(end.timestamp()) - 1)[0], UTC)
    values = {"device": literal(device), "metric": literal(metric.name), "start": literal(start), "end": literal(end)}
    store = LakeStore(request.conf)
    tables = {name: kind for name, kind in (("silver.readings", "reading"), ("silver.late", "late")) if is_table(store.table_path(name))}
    queries = [OF_WINDOW.format(**values, table=name, kind=kind) for name, kind in tables.items()]
    rows = request.rows(f"{' union all '.join(queries)} order by event_time, bronze_batch, bronze_row limit {MOST}") if queries else []
    return Readings(request.now, device, metric, start, end, _with_events(request, rows))


def _with_events(request: ViewRequest, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    shown = rows[:MOST_PAYLOADS]
    events: dict[tuple[int, int], Mapping[str, Any]] = {}
    if shown:
        keys = ", ".join(f"({row['bronze_batch']}, {row['bronze_row']})" for row in shown)
        batches = literal(sorted({row["bronze_batch"] for row in shown}))
        for event in request.rows(EVENTS.format(batches=batches, events=keys)):
            events[event["bronze_batch"], event["bronze_row"]] = {**event, "payload": short(event["payload"], LONGEST_PAYLOAD)}
    without = dict.fromkeys(("position", "header", "payload"))
    return [{**row, **events.get((row["bronze_batch"], row["bronze_row"]), without)} for row in rows]


def _instant(text: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(text), UTC)
    except (ValueError, OverflowError, OSError):
        pass
    try:
        return from_iso(text)
    except ValueError:
        return None
