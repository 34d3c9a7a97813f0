"""A look of the run at the newest batches: who sent, what, and what silver made of it. Without Spark; see watched_devices.py."""

from collections.abc import Iterator
from typing import Any

from orchestration.jobs.watched_devices import (
    Rest,
    Seen,
    SeenSource,
    Undeclared,
    WatchedDevices,
    add_rests,
    add_rows,
    add_sources,
    add_undeclared,
    watched_devices,
)
from orchestration.storage.delta import answers, ask, is_table, literal, open_table
from orchestration.storage.ops_tables import LEDGER
from orchestration.storage.positions import accounted_for, retried
from orchestration.storage.tables import LakeStore

MOST_BATCHES, MOST_ROWS, MOST_READINGS = 50, 200_000, 100_000
"""Only the newest batches of a backlog are looked at, and of these the values of the newest readings. More different names than MOST_ROWS
are no devices, but texts gone astray."""
IN_BATCHES = "bronze_batch > {after} and bronze_batch <= {up_to}"
EVENT_US, INGESTED_US = "cast(event_time as bigint)", "cast(ingested_at as bigint)"
EVENT_TIME_OF = {"readings": "event_time", "late": "event_time", "duplicates": "event_time", "quarantine": "null"}
"""Event time to count, by table of silver: that of what is in quarantine may be wrong, and says only how the clock of the device is."""
OF_TABLE = f"""
  select device_id, source, bronze_batch, {INGESTED_US} as at_us, cast({{event_time}} as bigint) as event_us,
    {EVENT_US} - {INGESTED_US} as lead_us
  from {{table}} where {IN_BATCHES} and device_id is not null
"""
SEEN = f"""
  select device_id, max(source) as source, count(distinct bronze_batch) as batches, min(at_us) as first_us, max(at_us) as last_us,
    max(event_us) as event_us, min(lead_us) as lead_us
  from ({{rows}}) group by device_id order by count(*) desc limit {MOST_ROWS}
"""
OF_METRIC = "partition by device_id, metric order by event_time"
RESTS = f"""
  with newest as (select * from rows where {IN_BATCHES} order by bronze_batch desc limit {MOST_READINGS}),
  compared as (select *, value is distinct from lag(value) over ({OF_METRIC}) as is_other from newest),
  numbered as (select *, sum(cast(is_other as int)) over ({OF_METRIC} rows unbounded preceding) as rest from compared)
  select device_id, metric, min(value) as value, count(*) as readings, min({EVENT_US}) as begin_us, max({EVENT_US}) as end_us
  from numbered group by device_id, metric, rest order by begin_us
"""
UNDECLARED = f"""
  select device_id, max(source) as source, count(*) as rows, min({INGESTED_US}) as first_us, max({INGESTED_US}) as last_us
  from rows where {{which}} and device_id is not null and array_has(broken_rules, 'device_is_known')
  group by device_id order by rows desc limit 100
"""
COUNTED = f"select source, sum(readings) as readings, sum(late) as late from rows where {IN_BATCHES} group by source"
LATE = f"""
  select source, min({INGESTED_US}) as late_at_us, max({EVENT_US}) as late_event_us from rows where {IN_BATCHES} group by source
"""


def look(lake: LakeStore) -> None:
    """Note what the batches brought that the ledger has passed since the last look."""
    file, up_to = watched_devices(lake.conf.lake), accounted_for(lake)
    watched, retry = file.read() or WatchedDevices(), retried(lake)
    if watched.bronze_batch > up_to:  # of a lake that was restored
        watched = WatchedDevices()
    if watched.bronze_batch == up_to and watched.retried == retry:
        return
    span = {"after": max(watched.bronze_batch, up_to - MOST_BATCHES), "up_to": up_to}
    add_rows(watched, _seen(lake, span))
    add_rests(watched, [Rest(**row) for row in _ask(lake, "silver.readings", RESTS.format(**span))])
    add_sources(watched, _sources(lake, span), lake.conf.bounds)
    add_undeclared(watched, _undeclared(lake, IN_BATCHES.format(**span)))
    if watched.retried != retry and watched.undeclared:
        names = literal([*watched.undeclared])
        watched.undeclared = dict(_undeclared(lake, f"bronze_batch <= {up_to} and device_id in {names}"))
    watched.bronze_batch, watched.retried = up_to, retry
    file.write(watched)


def _seen(lake: LakeStore, span: dict[str, int]) -> list[Seen]:
    paths = {name: path for name in EVENT_TIME_OF if is_table(path := lake.table_path(f"silver.{name}"))}
    rows = " union all ".join(OF_TABLE.format(table=name, event_time=EVENT_TIME_OF[name], **span) for name in paths)
    tables = {name: open_table(path) for name, path in paths.items()}
    return [Seen(**row) for row in ask(SEEN.format(rows=rows), tables).read_all().to_pylist()] if tables else []


def _sources(lake: LakeStore, span: dict[str, int]) -> Iterator[SeenSource]:
    late = {row.pop("source"): row for row in _ask(lake, "silver.late", LATE.format(**span))}
    for row in _ask(lake, LEDGER, COUNTED.format(**span)):
        yield SeenSource(**row, **late.get(row["source"], {}))


def _undeclared(lake: LakeStore, which: str) -> Iterator[tuple[str, Undeclared]]:
    for row in _ask(lake, "silver.quarantine", UNDECLARED.format(which=which)):
        yield row.pop("device_id"), Undeclared(**row)


def _ask(lake: LakeStore, table: str, query: str) -> list[dict[str, Any]]:
    return answers(lake.table_path(table), query)
