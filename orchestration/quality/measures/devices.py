"""Freshness and silence of tables, devices, groups and windows; sensors that are stuck at one value; devices whose clock has shifted."""

from expectations.wording import counted
from orchestration.quality.measures.context import HORIZON_HOURS, Context, Row, hour, not_checked, outcome_of, span
from orchestration.quality.outcome import Outcome

GAPS = 1.5
"""A group that rests every night is missing after 1.5 times its longest rest."""

SILENT = """
  with silent as (
    select kind, name, last_hour, absent from activity
    where kind <> 'all' and hours >= $min_hours and absent >= greatest($hours, $gaps * longest_absence)
  ),
  sizes as (select group_name as name, count(*) as devices from members group by group_name),
  explained as (select device_id as name from members join silent on kind = 'group' and name = group_name)
  select kind, name, last_hour, absent, devices from silent left join sizes using (name)
  where kind = 'group' or name not in (from explained) order by kind desc, absent desc, name
"""
UNHEARD = "select distinct device_id from members anti join (select distinct device_id from profile) using (device_id) order by all"

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

LOADED = not_checked("readings arrive later than that after they were measured: this is the past, loaded")


def fresh_rows(context: Context, table: str, *, column: str, max_seconds: float) -> Outcome:
    """The newest time in the column is at most `max_seconds` old. Event times are not checked while old data is loaded."""
    (row,) = context.ask(f'select max(epoch_us("{column}")) / 1e6 as newest from "{context.view_of(table)}"')
    if row["newest"] is None:
        return not_checked("there are no rows")
    if column == "event_time" and not _is_live(context, max_seconds):
        return LOADED
    age = context.now.timestamp() - row["newest"]
    text = f"the newest {column} is {span(age)} old"
    return outcome_of([{"column": column, "age_seconds": age}] if age > max_seconds else [], lambda _: text, text)


def fresh_groups(context: Context, table: str, *, max_seconds: float) -> Outcome:
    """The newest reading of each group is at most `max_seconds` old, or as old as its longest gap explains."""
    if not _is_live(context, max_seconds):
        return LOADED
    ages = context.ask(
        f"""select group_name, $now - max(last_seconds) as age, any_value(longest_gap) * 3600 as gap
        from {context.profile} join {context.members} using (device_id)
          join {context.activity} on kind = 'group' and name = group_name
        group by group_name order by age desc""",
        now=context.now.timestamp(),
    )
    offenders = [row for row in ages if row["age"] > max(max_seconds, GAPS * row["gap"])]
    oldest = f"; the oldest, {ages[0]['group_name']}, for {span(ages[0]['age'])}" if ages else ""
    return outcome_of(
        offenders, lambda row: f"group {row['group_name']}: nothing for {span(row['age'])}", f"heard: {counted(len(ages), 'group')}{oldest}"
    )


def _is_live(context: Context, max_seconds: float) -> bool:
    """Whether some reading of the horizon arrived within `max_seconds` of its event time."""
    (row,) = context.ask(f"select min(lag_seconds) as lag from {context.profile}")
    return row["lag"] is not None and row["lag"] <= max_seconds


def heard_devices(context: Context, table: str, *, hours: int, min_hours: int) -> Outcome:
    """Every device with readings in `min_hours` different hours has a recent reading, or was silent as long before."""
    if context.hours < min_hours:
        return not_checked(f"there are {context.hours:,} hours of readings, {min_hours} are needed")
    context.needs("activity")
    silent = context.ask(SILENT, hours=hours, min_hours=min_hours, gaps=GAPS)
    (total,) = context.ask("select count(*) as n from activity where kind = 'device'")
    return outcome_of(silent, _describe_silent, f"heard: {counted(total['n'], 'device')}")


def _describe_silent(row: Row) -> str:
    subject = f"group {row['name']} ({counted(row['devices'], 'device')}) is" if row["kind"] == "group" else f"device {row['name']} is"
    return f"{subject} missing: nothing for {counted(row['absent'], 'hour')}, since {hour(row['last_hour'])}"


def heard_registry(context: Context, table: str, *, min_hours: int) -> Outcome:
    """Every device of the registry that is in a group has a reading."""
    if context.hours < min_hours:
        return not_checked(f"there are {context.hours:,} hours of readings, {min_hours} are needed")
    context.needs("members")
    unheard = context.ask(UNHEARD)
    days = HORIZON_HOURS // 24
    return outcome_of(unheard, lambda row: f"device {row['device_id']} is registered, and silent for {days} days", "every device is heard")


def new_windows(context: Context, table: str, *, hours: int) -> Outcome:
    """The newest window of the group ends as close to the newest reading of all as lateness, steps or the longest gap explain."""
    conf, group = context.lake.conf, context.lake.conf.group_of(table)
    assert group is not None
    (windows,) = context.ask(f'select max(epoch_us(window_end)) / 3.6e9 as newest, count(*) as n from "{context.view_of(table)}"')
    if not windows["n"] or context.newest_hour is None:
        return not_checked("there are no windows")
    gaps = context.ask(f"select longest_gap from {context.activity} where kind = 'group' and name = $name", name=group.name)
    open_hours = (group.lateness_seconds + max(conf.metrics[metric].longest_seconds for metric in group.metrics)) / 3600
    behind = context.newest_hour - windows["newest"]
    is_behind = behind > open_hours + max(hours, GAPS * gaps[0]["longest_gap"] if gaps else 0)
    newest = f"the newest window of group {group.name} ended at {hour(int(windows['newest']))}"
    offenders = [{"group": group.name, "hours_behind": behind}] if is_behind else []
    return outcome_of(offenders, lambda _: f"{newest}, {behind:,.0f} hours before the newest reading", newest)


def varying_sensors(context: Context, table: str, *, hours: int, times: float, min_rows: int, min_share: float) -> Outcome:
    """No sensor that changed in a `min_share` of its hours has kept one value for `hours`, and for `times` its longest rest before."""
    if context.hours < 2 * hours:
        return not_checked(f"there are {context.hours:,} hours of readings, {2 * hours} are needed")
    stuck = context.ask(STUCK, hours=hours, times=times, min_rows=min_rows, min_share=min_share)
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
