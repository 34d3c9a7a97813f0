"""Windows by the calendar: days, weeks and months of a time zone, once in Python and once as SQL of Spark. Free of Spark itself.

A date begins when the local clock first shows it: where clocks are put forward at midnight, at 01:00; where they are put back over
midnight, at the first of two midnights. A date that a zone skipped has no window. Instants are whole seconds since 1970.
"""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from silver.metric import DAYS, Calendar, CalendarStep

SPAN = 43_200
"""Seconds; no window is shorter, so within a span of time of this length at most one begins."""


def window_of(calendar: Calendar, instant: int) -> tuple[int, int]:
    """Return the begin and the end of the window around an instant. A window holds its first instant and not its end."""
    zone = ZoneInfo(calendar.time_zone)
    first = _first(calendar, datetime.fromtimestamp(instant, zone).date())
    begin, end = _begin(first, zone), _begin(following := _next(calendar, first), zone)
    # Where the clock went back over midnight, it shows a date again whose window is over.
    return (begin, end) if instant < end else (end, _begin(_next(calendar, following), zone))


def windows_of_spans(calendar: Calendar, numbers: Iterable[int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield for spans, numbered since 1970, the number, and begin, end and following end of windows: an instant of the span is in the first
    window before its end, else in the second one.

    Engines of SQL join these, as they disagree: of two midnights DuckDB takes the later one, DataFusion that of the instant's own offset.
    """
    for number in numbers:
        begin, end = window_of(calendar, number * SPAN)
        yield number, begin, end, window_of(calendar, end)[1]


def begin_sql(calendar: Calendar) -> str:
    """SQL of Spark: the begin of the window that ends at `window_end`."""
    return _instant(_first_sql(calendar, "window_end - interval 1 microsecond"), calendar)


def end_sql(calendar: Calendar) -> str:
    """SQL of Spark: the end of the window around `event_time`."""
    first, length = _first_sql(calendar, "event_time"), "month" if calendar.step is CalendarStep.MONTH else "day"
    count = 1 if calendar.step is CalendarStep.MONTH else DAYS[calendar.step]
    end, following = (_instant(f"{first} + interval {n * count} {length}", calendar) for n in (1, 2))
    return f"if({end} > event_time, {end}, {following})"


def _first(calendar: Calendar, day: date) -> date:
    """The first date of the window of a date."""
    match calendar.step:
        case CalendarStep.DAY:
            return day
        case CalendarStep.WEEK:
            return day - timedelta(days=(day.weekday() - calendar.first_day) % 7)
        case CalendarStep.MONTH:
            return day.replace(day=1)


def _next(calendar: Calendar, first: date) -> date:
    later = first + timedelta(days=DAYS[calendar.step])
    return later.replace(day=1) if calendar.step is CalendarStep.MONTH else later


def _begin(day: date, zone: ZoneInfo) -> int:
    """The first of two midnights; of none, as far behind the one before it as midnight would be: that is when the clock is put forward."""
    return int(datetime(day.year, day.month, day.day, tzinfo=zone, fold=0).timestamp())


def _first_sql(calendar: Calendar, instant: str) -> str:
    """The first date of the window, at midnight, as the local clock shows it."""
    local, shift = f"from_utc_timestamp({instant}, '{calendar.time_zone}')", f"interval {calendar.first_day} day"
    if calendar.step is CalendarStep.WEEK:
        return f"date_trunc('week', {local} - {shift}) + {shift}"
    return f"date_trunc('{calendar.step}', {local})"


def _instant(local: str, calendar: Calendar) -> str:
    return f"to_utc_timestamp({local}, '{calendar.time_zone}')"
