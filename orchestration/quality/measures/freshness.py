"""Freshness: the age of the newest row of a table, and of each device group."""

from orchestration.quality.measures.context import Context
from orchestration.quality.measures.findings import not_checked, outcome_of, span
from orchestration.quality.outcome import Outcome

GAPS = 1.5
"""A group that rests every night is missing after 1.5 times its longest rest."""


def fresh_rows(context: Context, table: str, *, column: str, max_seconds: float) -> Outcome:
    """The newest time in the column is at most `max_seconds` old. Event times are not checked while old data is loaded."""
    (row,) = context.ask(f'select max(epoch_us("{column}")) / 1e6 as newest from "{context.view_of(table)}"')
    if row["newest"] is None:
        return not_checked("there are no rows")
    if column == "event_time" and not is_live(context, max_seconds):
        return not_checked("readings arrive later than that after they were measured: this is the past, loaded")
    age = context.now.timestamp() - row["newest"]
    text = f"the newest {column} is {span(age)} old"
    return outcome_of([{"column": column, "age_seconds": age}] if age > max_seconds else [], lambda _: text, text)


def fresh_groups(context: Context, table: str, *, max_seconds: float) -> Outcome:
    """The newest reading of each group is at most `max_seconds` old, or as old as its longest gap explains."""
    if not is_live(context, max_seconds):
        return not_checked("readings arrive later than that after they were measured: this is the past, loaded")
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
        offenders, lambda row: f"group {row['group_name']}: nothing for {span(row['age'])}", f"{len(ages)} groups are heard{oldest}"
    )


def is_live(context: Context, max_seconds: float) -> bool:
    """Whether some reading of the horizon arrived within `max_seconds` of its event time."""
    (row,) = context.ask(f"select min(lag_seconds) as lag from {context.profile}")
    return row["lag"] is not None and row["lag"] <= max_seconds
