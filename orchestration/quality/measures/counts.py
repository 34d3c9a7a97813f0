"""Counts of readings against a week before and other days, and of rows against ops.ledger, which `tidemark ledger` proves by identity."""

from collections.abc import Sequence
from itertools import groupby

import pyarrow as pa

from expectations.wording import counted
from orchestration.location import Location
from orchestration.quality.measures.context import Context, Row, hour, not_checked, outcome_of
from orchestration.quality.outcome import Outcome
from orchestration.quality.store import copy_rows
from orchestration.storage.delta import is_table, table_of

WEEK = 168
TRICKLE = 0.1
"""An hour with less than this share of its usual rows counts as empty: it may hold a few late rows."""

BY_HOUR = """
  create or replace temp table by_hour as
  select 'all' as name, hour, sum(n) as n from profile group by hour
  union all select 'group ' || group_name, hour, sum(n) from profile join members using (device_id) group by group_name, hour
"""
WEEK_BEFORE = """
  with checked as (
    select name, unnest(range($newest - $hours, $newest)) as hour from (select distinct name from by_hour)
  )
  select name, checked.hour, coalesce(now.n, 0) as n, before.n as before
  from checked join by_hour before using (name) left join by_hour now on now.name = checked.name and now.hour = checked.hour
  where before.hour = checked.hour - 168 and before.n >= $min_rows order by name, checked.hour
"""
# UTC days. The day of the newest reading is not over, and hours before the first and after the last reading of a group do not count.
LOST_HOURS = """
  with spans as (select name, min(hour) as first, max(hour) as last from by_hour group by name),
  slots as (select name, unnest(range(first + 1, last)) as hour from spans),
  counted as (
    select slots.name, slots.hour, slots.hour // 24 as day, coalesce(n, 0) as n from slots left join by_hour using (name, hour)
  ),
  compared as (
    select c.*, count(*) as days, avg((o.n > 0)::int) as share, median(o.n) as usual
    from counted c join counted o on o.name = c.name and o.hour % 24 = c.hour % 24 and o.day <> c.day group by all
  )
  select *, max(n) over (partition by name, day) as most, count(*) over () as slots from compared
  where day < $newest // 24 and days >= $min_days
  qualify share >= $min_share and n < $trickle * usual and most >= 0.5 * usual order by name, hour
"""

COUNTED = {
    "events": "bronze.events",
    "readings": "silver.readings",
    "quarantined": "silver.quarantine",
    "late": "silver.late",
    "duplicates": "silver.duplicates",
}
BALANCE = """
  with expected as (
    select bronze_batch, kind, sum(n) as said from (unpivot (select bronze_batch, {counts} from written) on {counts} into name kind value n)
    group by all
  ),
  counted as (select bronze_batch, kind, sum(n) as held from ({counted}) where bronze_batch <= $accounted group by all)
  select bronze_batch, kind, coalesce(said, 0) as said, coalesce(held, 0) as held
  from expected full join counted using (bronze_batch, kind)
  where said is distinct from held and coalesce(said, 0) <> coalesce(held, 0) order by bronze_batch, kind
"""


def as_a_week_before(context: Context, table: str, *, hours: int, min_ratio: float, max_ratio: float, min_rows: int) -> Outcome:
    """Each of the last whole hours has between `min_ratio` and `max_ratio` of the rows of the same hour a week before."""
    by_hour(context)
    newest, lateness = context.newest_hour or 0, context.lake.conf.policy.lateness_seconds
    # Rows of an hour arrive until a lateness after it.
    compared = context.ask(WEEK_BEFORE, newest=newest - -(-lateness // 3600), hours=hours, min_rows=min_rows)
    if not compared:
        return not_checked(f"there are {context.hours:,} hours of readings, and no hour with {min_rows} rows a week before")
    offenders = [row for row in compared if not min_ratio <= row["n"] / row["before"] <= max_ratio]
    return outcome_of(merged(offenders), describe_week, f"{len(compared):,} hours of readings and groups are like those of the week before")


def describe_week(row: Row) -> str:
    return f"{subject(row)}: {counted(row['n'], 'row')} in {stretch(row)}, {row['before']:,} a week before"


def whole_days(context: Context, table: str, *, min_share: float, min_days: int) -> Outcome:
    """No hour of a past day is empty that has readings on most other days, while the day has other readings."""
    by_hour(context)
    if context.hours < 24 * (min_days + 1):
        return not_checked(f"there are {context.hours:,} hours of readings, {24 * (min_days + 1)} are needed")
    lost = context.ask(LOST_HOURS, newest=context.newest_hour or 0, min_share=min_share, min_days=min_days, trickle=TRICKLE)
    return outcome_of(merged(lost), describe_day, "no hour of a past day is missing")


def describe_day(row: Row) -> str:
    return f"{subject(row)}: the day is truncated, {counted(row['n'], 'row')} in {stretch(row)}, {row['usual']:,.0f} an hour are usual"


def by_hour(context: Context) -> None:
    """Create the table by_hour: counts of all readings and of each group."""
    context.needs("profile", "members")
    context.store.execute(BY_HOUR)


def subject(row: Row) -> str:
    """All readings, or the name of a group."""
    return "all readings" if row["name"] == "all" else str(row["name"])


def stretch(row: Row) -> str:
    return f"{counted(row['hours'], 'hour')} from {hour(row['hour'])}"


def merged(rows: Sequence[Row]) -> list[Row]:
    """Consecutive hours as one row, with sums. Sorted by name and hour. An hour reported for all is left out of the groups."""
    of_all = {row["hour"] for row in rows if row["name"] == "all"}
    reported = [row for row in rows if row["name"] == "all" or row["hour"] not in of_all]
    stretches: list[Row] = []
    for _, consecutive in groupby(enumerate(reported), lambda numbered: (numbered[1]["name"], numbered[1]["hour"] - numbered[0])):
        of_stretch = [row for _, row in consecutive]
        sums = {name: sum(row[name] for row in of_stretch) for name in ("n", "before") if name in of_stretch[0]}
        stretches.append({**of_stretch[0], **sums, "hours": len(of_stretch)})
    return stretches


def balanced(context: Context, table: str) -> Outcome:
    """In every bronze batch up to the ledger's newest, the tables hold as many rows as it counted."""
    from orchestration.jobs.account.retry import pending

    lake = context.lake
    if pending(lake) is not None:
        return not_checked("a retry of quarantine is under way")
    if context.ledger is None:
        return not_checked("there is no account to compare with")
    copy_rows(context.store, "written", context.ledger)
    (passed,) = context.ask("select max(bronze_batch) as batch, count(distinct bronze_batch) as batches, sum(events) as n from written")
    counts_of_tables = " union all ".join(
        f"""select bronze_batch, '{kind}' as kind, count(*) as n from "{context.view_of(name)}" group by all"""
        for kind, name in COUNTED.items()
    )
    wrong = context.ask(BALANCE.format(counts=", ".join(COUNTED), counted=counts_of_tables), accounted=passed["batch"])
    return outcome_of(
        wrong, _describe_batch, f"accounted for: {counted(passed['n'], 'event')} of {counted(passed['batches'], 'bronze batch')}"
    )


def _describe_batch(row: Row) -> str:
    held = counted(row["held"], "row")
    return f"bronze batch {row['bronze_batch']}: {COUNTED[row['kind']]} holds {held}, ops.ledger counted {row['said']:,}"


def ledger(path: Location) -> pa.Table | None:
    """Rows of ops.ledger; None without any."""
    rows = table_of(path) if is_table(path) else None
    return rows if rows is not None and rows.num_rows else None
