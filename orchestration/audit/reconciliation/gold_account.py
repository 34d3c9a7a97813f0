"""Gold's ledger: every reading of a device group is counted in an emitted window, in an open one, or late for the group and kept aside.

Taken at the newest snapshot, so it is true while a run goes on; without Spark, and in the memory that the windows need. All counts are of
a reading in one of its windows, as sliding windows count a reading several times. What silver has of the group is matched with what gold
has of it window by window:

    readings + late = counted + open + kept_aside + waiting + missing - duplicated
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from expectations.wording import counted
from gold.windows.calendar import SPAN, window_of, windows_of_spans
from gold.windows.spec import Group, Late
from orchestration.audit.reconciliation.account import SETTINGS, Rows
from orchestration.audit.verify.confs import conf_history
from orchestration.engine.lake import Lake
from orchestration.storage.delta import OpenTable, ask, instant, literal, open_table
from orchestration.storage.generations import numbered
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import Part, views
from orchestration.utc import from_micros, to_micros
from silver.metric import Metric

WRONG = ("missing", "duplicated")
COUNTS = ("readings", "late", "counted", "open", "kept_aside", "waiting", *WRONG)
COLUMNS = ("group", "metric", *COUNTS)
WRONG_WINDOW = ("group", "device_id", "metric", "window_end", "wrong")
MOST = 10
OF_BOTH = {"readings": "silver.readings", "late": "silver.late"}
SECOND = 1_000_000
EVER = -(2**40)
"""Before all windows, in seconds since 1970."""
SPANS = """
  select distinct metric, (at - ((at % {in_span}) + {in_span}) % {in_span}) / {in_span} as span
  from (select metric, arrow_cast(event_time, 'Int64') as at from {table} where metric in {calendars})
"""

# Instants are counted in microseconds since 1970; % is negative before it. One row a device, metric, list of groups and slide, so that
# readings are gone through once, whatever the number of groups and of windows that hold them.
SLIDES = """
  select device_id, arrived.metric, groups, slide, steps, count(*) as n, min(bronze_batch) as first_batch,
    coalesce(case when at < changes then changes else later end, at - ((at % slide) + slide) % slide + slide) as first_end
  from (
    select device_id, rows.metric, groups, slide, slides as steps, arrow_cast(event_time, 'Int64') as at, bronze_batch
    from {table} as rows join metrics on metrics.metric = rows.metric where bronze_batch <= {bronze_batch}
  ) as arrived left join spans on spans.metric = arrived.metric and span = (at - ((at % {in_span}) + {in_span}) % {in_span}) / {in_span}
  where at >= {since} group by device_id, arrived.metric, groups, slide, steps, first_end
"""
OF_SILVER = f"""
  select member as group_name, device_id, metric, first_end + nth * slide as ends, n, first_batch from (
    select member, device_id, metric, first_end, slide, n, first_batch, unnest(range(0, steps)) as nth from (
      select unnest(groups) as member, device_id, metric, first_end, slide, steps, n, first_batch from ({SLIDES})
    )
  )
"""
READINGS, LATE_ROWS = (OF_SILVER.replace("{table}", table) for table in ("readings", "late"))
WINDOWS = f"""
  with metrics(metric, slide, slides) as (values {{metrics}}),
  spans(metric, span, changes, later) as (values {{spans}}),
  members(group_name, metric, first_end, closed_until, is_amended, since_batch) as (values {{members}}),
  counts as (
    select group_name, device_id, metric, ends, n as readings, 0 as late, 0 as set_aside, 0 as counted, first_batch from ({READINGS})
    union all
    select group_name, device_id, metric, ends, 0, n, 0, 0, first_batch from ({LATE_ROWS})
    union all
    select group_name, device_id, metric, ends, 0, 0, 1, 0, null from ({{set_aside}})
    union all
    select group_name, device_id, metric, ends, 0, 0, 0, n, null from ({{counted}})
  ),
  by_window as (
    select group_name, device_id, metric, ends, min(first_batch) as first_batch,
      sum(readings) as readings, sum(late) as late, sum(set_aside) as set_aside, sum(counted) as counted
    from counts group by group_name, device_id, metric, ends
  ),
  placed as (
    select by_window.*, ends <= closed_until as is_closed,
      case when is_amended then 0 else set_aside + late end as kept_aside,
      case when is_amended and ends > closed_until then late else 0 end as waiting
    from by_window join members on members.group_name = by_window.group_name and members.metric = by_window.metric
    where ends >= members.first_end and coalesce(first_batch >= since_batch, true)
  ),
  balanced as (
    select *, readings + late - counted - kept_aside - waiting as rest from placed
  ),
  windows as (
    select *, case when is_closed then 0 else greatest(rest, 0) end as open,
      case when is_closed then greatest(rest, 0) else 0 end as missing, greatest(-rest, 0) as duplicated
    from balanced
  )
"""
ACCOUNT = f"""
  {WINDOWS} select group_name, metric, {", ".join(f"sum({count}) as {count}" for count in COUNTS)} from windows group by group_name, metric
"""
WRONG_WINDOWS = f"""
  {WINDOWS} select group_name, device_id, metric, ends, {", ".join(COUNTS)} from windows
  where {" or ".join(f"{wrong} > 0" for wrong in WRONG)} order by group_name, device_id, metric, ends limit {MOST}
"""
OPEN_WINDOWS = f"""
  with metrics(metric, slide, slides) as (values {{metrics}}),
  spans(metric, span, changes, later) as (values {{spans}}),
  members(group_name, metric, first_end, closed_until, is_amended, since_batch) as (values {{members}}),
  recent as (select * from readings where bronze_batch > {{after}} and event_time >= {{start}})
  select group_name, count(*) as windows, max(ends) as last_end from (
    select distinct rows.group_name, device_id, rows.metric, ends from ({OF_SILVER.replace("{table}", "recent")}) as rows
    join members on members.group_name = rows.group_name and members.metric = rows.metric where ends > closed_until
  ) group by group_name
"""
OF_GOLD = "select device_group as group_name, device_id, metric, arrow_cast(window_end, 'Int64') as ends, {n} as n from ({rows})"


@dataclass(frozen=True)
class OpenGoldTables:
    """The tables of a snapshot, and the words that the queries leave open."""

    tables: Mapping[str, OpenTable]
    words: Mapping[str, str]

    def ask(self, sql: str) -> Rows:
        rows: Rows = ask(sql.format(**self.words), self.tables, SETTINGS).read_all().to_pylist()
        return rows


def open_gold_tables(lake: Lake, snapshot: Snapshot, since: date | None = None) -> OpenGoldTables | None:
    """Open the tables that the snapshot pins; None if it has no group. `since`: windows from that day on.

    Windows with readings from before a group had their metric are left out: gold counts what came since.
    """
    groups = _groups(lake, snapshot)
    if not groups:
        return None
    of_snapshot, available = numbered(lake.conf.lake, snapshot.generation), views(lake.conf, snapshot, "gold.aggregates gold.late")
    places = {word: Part(of_snapshot.table(lake.conf.lake, name), snapshot.versions[name]) for word, name in OF_BOTH.items()}
    words = _words(lake, snapshot, groups, since)
    for word, kind in (("counted", "aggregates"), ("set_aside", "late")):
        view = available[f"gold.{kind}"]
        of_kind = {f"{kind}_{number}": part for number, part in enumerate(view.parts)}
        places |= of_kind
        words[word] = OF_GOLD.format(n="count" if view.key else 1, rows=view.select([*of_kind]))
    return _opened(lake, groups, {word: open_table(part.location, part.version) for word, part in places.items()}, words)


def _opened(lake: Lake, groups: Sequence[Group], tables: Mapping[str, OpenTable], words: dict[str, str]) -> OpenGoldTables:
    """With the windows of calendar metrics in the spans of time that hold readings."""
    calendars = {name: calendar for group in groups for name in group.metrics if (calendar := lake.conf.metrics[name].calendar)}
    words |= {"in_span": str(SPAN * SECOND), "calendars": literal([*calendars])}
    opened = OpenGoldTables(tables, words)
    of_readings = [SPANS.replace("{table}", table) for table in OF_BOTH if table in tables and calendars]
    numbers = {(row["metric"], row["span"]) for sql in of_readings for row in opened.ask(sql)}
    spans = [
        f"({literal(name)}, {span}, {changes * SECOND}, {later * SECOND})"
        for name, number in numbers
        for span, _, changes, later in windows_of_spans(calendars[name], [number])
    ]
    return OpenGoldTables(tables, words | {"spans": ", ".join(spans or ["('', 0, 0, 0)"])})


def gold_account(lake: Lake, tables: OpenGoldTables) -> Rows:
    """A row a group and metric, in the order of the conf; none for a metric that nobody has measured."""
    counts = {(row.pop("group_name"), row.pop("metric")): row for row in tables.ask(ACCOUNT)}
    keys = [(group.name, metric) for group in lake.conf.groups.values() for metric in group.metrics]
    return [{"group": key[0], "metric": key[1]} | counts[key] for key in keys if key in counts]


def gold_discrepancies(tables: OpenGoldTables) -> Rows:
    """The first ten windows that do not hold what silver has for them."""
    return [
        {"group": row["group_name"], "device_id": row["device_id"], "metric": row["metric"]}
        | {"window_end": from_micros(row["ends"]), "wrong": _wrong(row)}
        for row in tables.ask(WRONG_WINDOWS)
    ]


def open_windows(lake: Lake, snapshot: Snapshot, after: int) -> Rows:
    """Windows that are not emitted and hold readings of bronze batches after one, by group, and the last end, in µs since 1970."""
    if not (groups := _groups(lake, snapshot)):
        return []
    path = numbered(lake.conf.lake, snapshot.generation).table(lake.conf.lake, "silver.readings")
    longest = max(lake.conf.metrics[name].longest_seconds for group in groups for name in group.metrics)
    start = instant(to_micros(min(snapshot.closed_until[group.stream] for group in groups)) - longest * SECOND)
    words = _words(lake, snapshot, groups, None) | {"after": str(after), "start": start}
    return _opened(lake, groups, {"readings": open_table(path, snapshot.versions["silver.readings"])}, words).ask(OPEN_WINDOWS)


def _groups(lake: Lake, snapshot: Snapshot) -> list[Group]:
    """A stream that came to the conf later is in a later snapshot."""
    return [group for stream, groups in lake.conf.streams.items() if stream in snapshot.closed_until for group in groups]


def _words(lake: Lake, snapshot: Snapshot, groups: Sequence[Group], since: date | None) -> dict[str, str]:
    metrics = {name: lake.conf.metrics[name] for group in groups for name in group.metrics}
    history = conf_history(lake.conf, numbered(lake.conf.lake, snapshot.generation))
    slides = {name: metric.every_seconds for name, metric in metrics.items()}
    first = int(datetime(since.year, since.month, since.day, tzinfo=UTC).timestamp()) if since else EVER
    return {
        "bronze_batch": str(snapshot.bronze_batch),
        "since": str(first * SECOND),
        "metrics": ", ".join(
            f"({literal(name)}, {slides[name] * SECOND}, {metric.window_seconds // slides[name]})" for name, metric in metrics.items()
        ),
        "members": ", ".join(
            f"({literal(group.name)}, {literal(name)}, {_first_end(metrics[name], first) * SECOND}, "
            f"{to_micros(snapshot.closed_until[group.stream])}, {group.late is Late.AMEND}, {history.since_batch(group.name, name)})"
            for group in groups
            for name in group.metrics
        ),
    }


def _first_end(metric: Metric, first: int) -> int:
    """The end of the first window that begins at an instant or later."""
    if metric.calendar is None or first == EVER:
        return first + metric.longest_seconds
    begin, end = window_of(metric.calendar, first)
    return end if begin == first else window_of(metric.calendar, end)[1]


def _wrong(row: Mapping[str, Any]) -> str:
    silver = f"silver has {counted(row['readings'], 'reading')}" + (f" and {row['late']} late ones" if row["late"] else "")
    gold = f"gold counts {row['counted']}" + (f" and keeps {row['kept_aside']} aside" if row["kept_aside"] else "")
    return f"{silver}, {gold}"
