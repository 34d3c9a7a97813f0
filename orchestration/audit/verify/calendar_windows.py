"""Windows by the calendar once more: a date begins at the first instant at which the local clock shows it, or a later date."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import duckdb

from orchestration.audit.verify.store import fill
from silver.metric import Metric

COLUMNS = "name VARCHAR, begins TIMESTAMP, ends TIMESTAMP"
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MARGIN = timedelta(days=70)


def make_calendar_windows(store: duckdb.DuckDBPyConnection, metrics: Iterable[Metric]) -> None:
    """Make `calendar_windows` of metrics, from before the first event time of `counted` until after the last."""
    rows = list[tuple[str, datetime, datetime]]()
    for metric in metrics:
        first, last = store.execute(
            "select min(event_time), max(event_time) from counted where metric = $name", {"name": metric.name}
        ).fetchall()[0]
        if first is not None:
            begins = [*_begins(metric, first.date(), last.date() + MARGIN)]
            rows += [(metric.name, begin, end) for begin, end in pairwise(begins)]
    fill(store, "calendar_windows", COLUMNS, rows)


def _begins(metric: Metric, first: date, last: date) -> Iterator[datetime]:
    """Yield the begins of windows in UTC, without a zone, as the store holds them."""
    zone, before = ZoneInfo(metric.time_zone or "UTC"), None
    day = max(first, date.min + MARGIN) - MARGIN
    while day < last:
        instant = _first_instant(day, zone)
        if instant != before and _is_first(metric, day):
            yield instant
            before = instant
        day += timedelta(days=1)


def _is_first(metric: Metric, day: date) -> bool:
    if metric.step == "month":
        return day.day == 1
    return metric.step == "day" or WEEKDAYS[day.weekday()] == (metric.week_starts or "monday")


def _first_instant(day: date, zone: ZoneInfo) -> datetime:
    """The first of the midnights by the offsets of these days at which the clock shows the date, or a later one where it was skipped."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    offsets = {(midnight + timedelta(hours=hours)).astimezone(zone).utcoffset() or timedelta() for hours in range(-36, 37, 6)}
    shown = (instant for offset in offsets if (instant := midnight - offset).astimezone(zone).date() >= day)
    return min(shown).replace(tzinfo=None)
