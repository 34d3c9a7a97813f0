"""Sensors that are stuck at one value, and devices whose clock has shifted."""

from orchestration.quality.measures.context import Context
from orchestration.quality.measures.findings import Row, hour, not_checked, outcome_of, span
from orchestration.quality.outcome import Outcome

# An hour has a change if its values differ, or differ from the hour before. A sensor without changes in most hours is a switch.
STUCK = """
  with by_hour as (select device_id, metric, hour, sum(n) as n, min(lo) as lo, max(hi) as hi from profile group by all),
  changes as (
    select *, lo < hi or lo is distinct from lag(hi) over (partition by device_id, metric order by hour) as is_change from by_hour
  ),
  gaps as (
    select device_id, metric, hour, hour - lag(hour) over (partition by device_id, metric order by hour) as gap from changes where is_change
  ),
  rests as (select device_id, metric, count(*) as changes, max(hour) as last_change, max(gap) as longest_rest from gaps group by all)
  select device_id, metric, last_change, max(hour) - last_change as hours, sum(n) filter (hour > last_change) as n,
    arg_max(hi, hour) as value
  from rests join by_hour using (device_id, metric) group by device_id, metric, last_change, changes, longest_rest
  having hours >= greatest($hours, $times * longest_rest) and n >= $min_rows
    and changes >= $min_share * count(*) filter (hour <= last_change) and count(*) filter (hour <= last_change) >= $hours
  order by hours desc, device_id, metric
"""
# The row with the smallest lag in an hour shows the clock: rows that a device buffered without network do not. Compared with the median of
# all devices, so that a delay of the pipeline shifts no clock.
CLOCKS = """
  with freshest as (select device_id, hour, min(lag_seconds) as lag from profile group by all),
  apart as (select device_id, hour, lag - median(lag) over (partition by hour) as lag from freshest),
  sides as (
    select device_id, median(lag) filter (hour > $newest - $hours) as now, median(lag) filter (hour <= $newest - $hours) as before,
      mad(lag) filter (hour <= $newest - $hours) as spread, count(*) filter (hour > $newest - $hours) as hours_now,
      count(*) filter (hour <= $newest - $hours) as hours_before
    from apart group by device_id
  )
  select device_id, before - now as ahead, now, before, spread from sides
  where hours_now >= $min_hours and hours_before >= 2 * $min_hours and abs(now - before) > greatest($max_seconds, 6 * spread)
  order by abs(now - before) desc, device_id
"""


def varying_sensors(context: Context, table: str, *, hours: int, times: float, min_rows: int, min_share: float) -> Outcome:
    """No sensor that used to vary has kept one value for `hours`, and for `times` its longest rest before.

    A sensor used to vary if it changed in a `min_share` of its hours.
    """
    if context.hours < 2 * hours:
        return not_checked(f"there are {context.hours:,} hours of readings, {2 * hours} are needed")
    limits = {"hours": hours, "times": times, "min_rows": min_rows, "min_share": min_share}
    stuck = context.ask(STUCK, **limits)
    return outcome_of(stuck, _describe_stuck, "every sensor that varied still does")


def _describe_stuck(row: Row) -> str:
    since = hour(row["last_change"] + 1)
    return f"{row['metric']} of device {row['device_id']} is stuck: {row['value']:g} in all {row['n']:,} rows since {since}"


def steady_clocks(context: Context, table: str, *, hours: int, min_hours: int, max_seconds: float) -> Outcome:
    """The lag from event time to arrival has changed by at most `max_seconds`, compared with other devices."""
    if context.hours < hours + 2 * min_hours:
        return not_checked(f"there are {context.hours:,} hours of readings, {hours + 2 * min_hours} are needed")
    arrived = context.ask("select count(distinct arrived) as n from profile")[0]["n"]
    if arrived < 3 * min_hours:
        return not_checked(f"readings arrived in {arrived} different hours, {3 * min_hours} are needed: this is the past, loaded")
    shifted = context.ask(CLOCKS, newest=context.newest_hour, hours=hours, min_hours=min_hours, max_seconds=max_seconds)
    return outcome_of(shifted, _describe_clock, "no clock has shifted")


def _describe_clock(row: Row) -> str:
    side = "ahead of" if row["ahead"] > 0 else "behind"
    return f"the clock of device {row['device_id']} has shifted: it is {span(abs(row['ahead']))} {side} where it was"
