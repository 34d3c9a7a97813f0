"""Hours of a day, on the wall clock of a zone: whether an instant or an interval lies within them. Instants in microseconds since 1970."""

from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from gold.alerts.spec import Hours
from gold.instants import SECOND

NEVER = 2**62
MINUTE, DAY = 60 * SECOND, 86_400 * SECOND
LONGEST_PAUSE_DAYS = 15
"""Hours hold on one day of the week at least; a day on which clocks change may leave them out."""


@lru_cache(100_000)
def is_within(hours: Hours, minute: int) -> bool:
    """Whether these hours hold in a minute, counted since 1970."""
    local = datetime.fromtimestamp(minute * 60, ZoneInfo(hours.zone))
    minute_of_day, day = local.hour * 60 + local.minute, local.weekday()
    if hours.begin < hours.end:
        return day in hours.days and hours.begin <= minute_of_day < hours.end
    return (day in hours.days and minute_of_day >= hours.begin) or ((day - 1) % 7 in hours.days and minute_of_day < hours.end)


def holds(hours: Hours | None, begin: int, end: int) -> bool:
    """Whether all of an interval lies within the hours; of one without length its instant."""
    if hours is None:
        return True
    return is_within(hours, begin // MINUTE) if begin == end else first_end(hours, begin, end - begin) == end


def first_end(hours: Hours | None, since: int, length: int) -> int:
    """Return the end of the first interval of this length that begins at `since` or later and lies within the hours; NEVER for none."""
    if hours is None:
        return since + length
    begin = reached = since
    for day in range(since // DAY, (since + length) // DAY + LONGEST_PAUSE_DAYS):
        for opens, closes in _spans(hours, day):
            if closes <= since:
                continue
            if opens > reached:
                begin = opens
            reached = closes
            if reached - begin >= length:
                return begin + length
    return NEVER


@lru_cache(10_000)
def _spans(hours: Hours, day: int) -> tuple[tuple[int, int], ...]:
    """When the hours hold in a day of UTC, counted since 1970."""
    first = day * DAY // MINUTE
    within = [is_within(hours, minute) for minute in range(first, first + DAY // MINUTE)]
    edges = [at for at, (before, this) in enumerate(zip([False, *within], [*within, False], strict=True)) if before != this]
    return tuple(((first + opens) * MINUTE, (first + closes) * MINUTE) for opens, closes in zip(edges[::2], edges[1::2], strict=True))
