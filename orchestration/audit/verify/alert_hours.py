"""Hours of alerts once more, minute by minute of the wall clock. Instants are microseconds since 1970."""

from functools import lru_cache
from zoneinfo import ZoneInfo

from gold.alerts.spec import Hours
from orchestration.utc import from_micros

SECOND = 1_000_000
MINUTE = 60 * SECOND
LONGEST_PAUSE = 16 * 1440
"""Minutes; hours hold on a day of each week."""


def first_end(hours: Hours | None, since: int, seconds: int) -> list[int]:
    """Return the end of the first such duration since an instant that is all within the hours, minute by minute; nothing for none."""
    if hours is None:
        return [since + seconds * SECOND]
    begin: int | None = None
    for minute in range(since // MINUTE, since // MINUTE + seconds // 60 + LONGEST_PAUSE):
        if not is_within(hours, minute):
            begin = None
            continue
        begin = max(since, minute * MINUTE) if begin is None else begin
        if (minute + 1) * MINUTE - begin >= seconds * SECOND:
            return [begin + seconds * SECOND]
    return []


@lru_cache(500_000)
def is_within(hours: Hours, minute: int) -> bool:
    """Say whether a minute is within the hours. For hours that pass midnight, the part after it belongs to the day before."""
    local = from_micros(minute * MINUTE).astimezone(ZoneInfo(hours.zone))
    of_day, goes_on = local.hour * 60 + local.minute, hours.end <= hours.begin
    is_of_yesterday = goes_on and of_day < hours.end
    is_in = is_of_yesterday or (of_day >= hours.begin and (goes_on or of_day < hours.end))
    return is_in and (local.weekday() - is_of_yesterday) % 7 in hours.days
