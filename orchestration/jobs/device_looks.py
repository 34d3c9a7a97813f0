"""A look of the run at the newest batches: who sent, what, and what silver made of it. Without Spark; see watched_devices.py."""

from collections.abc import Iterator
from typing import Any

from orchestration.jobs.watched_devices import (
    Rests,
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
from orchestration.storage.delta import answers, literal
from orchestration.storage.ops_tables import LEDGER
from orchestration.storage.positions import accounted_for, retried
from orchestration.storage.tables import LakeStore

MOST_BATCHES, MOST_ROWS, MOST_READINGS = 50, 200_000, 500_000
"""Only the newest batches of a backlog are looked at, and for values fewer. More different names than MOST_ROWS are no devices, but texts
gone astray."""
IN_BATCHES = "bronze_batch > {after} and bronze_batch <= {up_to}"
EVENT_US, INGESTED_US = "cast(event_time as bigint)", "cast(ingested_at as bigint)"
ROWS = f"""
  select device_id, max(source) as source, count(distinct bronze_batch) as batches, min({INGESTED_US}) as first_us,
    max({INGESTED_US}) as last_us, min({EVENT_US} - {INGESTED_US}) as lead_us {{more}}
  from rows where {IN_BATCHES} and device_id is not null group by device_id order by count(*) desc limit {MOST_ROWS}
"""
EVENT = f", max({EVENT_US}) as event_us"
MORE = {"silver.readings": EVENT, "silver.late": EVENT, "silver.duplicates": EVENT, "silver.quarantine": ""}
IN_ORDER = "partition by device_id, metric order by event_time rows unbounded preceding"
RESTS = f"""
  with compared as (
    select device_id, metric, event_time, value, case when value = lag(value) over (partition by device_id, metric order by event_time)
      then 0 else 1 end as is_other from rows where {IN_BATCHES}),
  numbered as (select *, sum(is_other) over ({IN_ORDER}) as rest from compared),
  rests as (
    select device_id, metric, rest, count(*) as equal, min(value) as value, min({EVENT_US}) as begin_us, max({EVENT_US}) as event_us
    from numbered group by device_id, metric, rest),
  placed as (select *, rest = max(rest) over (partition by device_id, metric) as is_last from rests)
  select device_id, metric, sum(equal) as readings, count(*) as count, max(case when rest = 1 then equal end) as first,
    max(case when rest = 1 then value end) as first_value, max(case when is_last then equal end) as last,
    max(case when is_last then value end) as last_value, max(case when is_last then begin_us end) as begin_us,
    max(event_us) as event_us, max(case when is_last then 0 else equal end) as longest
  from placed group by device_id, metric order by readings desc limit {MOST_ROWS}
"""
UNDECLARED = f"""
  select device_id, max(source) as source, count(*) as rows, min({INGESTED_US}) as first_us, max({INGESTED_US}) as last_us
  from rows where {{which}} and device_id is not null and array_has(broken_rules, 'device_is_known')
  group by device_id order by rows desc limit 100
"""
LATE = f"""
  select source, bronze_batch, min({INGESTED_US}) as at_us, max({EVENT_US}) as late_event_us
  from rows where {IN_BATCHES} group by source, bronze_batch
"""
COUNTED = f"""
  select source, bronze_batch, sum(readings) as readings, sum(late) as late from rows where {IN_BATCHES}
  group by source, bronze_batch order by bronze_batch
"""
Rows = list[dict[str, Any]]


def look(lake: LakeStore) -> None:
    """Note what the batches brought that the ledger has passed since the last look."""
    file, up_to = watched_devices(lake.conf.lake), accounted_for(lake)
    watched, retry = file.read() or WatchedDevices(), retried(lake)
    if watched.bronze_batch > up_to:  # of a lake that was restored
        watched = WatchedDevices()
    if watched.bronze_batch == up_to and watched.retried == retry:
        return
    span = {"after": max(watched.bronze_batch, up_to - MOST_BATCHES), "up_to": up_to}
    counted = _ask(lake, LEDGER, COUNTED.format(**span))
    add_rows(watched, _seen(lake, span))
    add_rests(watched, _rests(lake, span, counted))
    add_sources(watched, _sources(lake, span, counted), lake.conf.bounds)
    add_undeclared(watched, _undeclared(lake, IN_BATCHES.format(**span)))
    if watched.retried != retry and watched.undeclared:
        names = literal([*watched.undeclared])
        watched.undeclared = dict(_undeclared(lake, f"bronze_batch <= {up_to} and device_id in {names}"))
    watched.bronze_batch, watched.retried = up_to, retry
    file.write(watched)


def _seen(lake: LakeStore, span: dict[str, int]) -> Iterator[Seen]:
    for table, more in MORE.items():
        for row in _ask(lake, table, ROWS.format(more=more, **span)):
            yield Seen(**row)


def _rests(lake: LakeStore, span: dict[str, int], counted: Rows) -> Iterator[Rests]:
    readings, after = 0, span["after"]
    for row in reversed(counted):
        readings += row["readings"]
        if readings > MOST_READINGS:
            after = max(after, row["bronze_batch"])
    for row in _ask(lake, "silver.readings", RESTS.format(after=after, up_to=span["up_to"])):
        yield Rests(**row)


def _sources(lake: LakeStore, span: dict[str, int], counted: Rows) -> Iterator[SeenSource]:
    late = {(row["source"], row["bronze_batch"]): row for row in _ask(lake, "silver.late", LATE.format(**span))}
    for row in counted:
        of_late = late.get((row["source"], row["bronze_batch"]), {"at_us": 0, "late_event_us": None})
        yield SeenSource(row["source"], of_late["at_us"], row["readings"], row["late"], of_late["late_event_us"])


def _undeclared(lake: LakeStore, which: str) -> Iterator[tuple[str, Undeclared]]:
    for row in _ask(lake, "silver.quarantine", UNDECLARED.format(which=which)):
        yield row.pop("device_id"), Undeclared(**row)


def _ask(lake: LakeStore, table: str, query: str) -> Rows:
    return answers(lake.table_path(table), query)
