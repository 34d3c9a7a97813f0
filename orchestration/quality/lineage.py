"""Finds the event that a failing row came from, with its payload, in the files of bronze that can hold it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.quality.store import create_view, open_store, pin_table
from orchestration.storage.delta import is_table, open_table

MOST_BYTES = 32 * 2**20
INSTANT = pa.timestamp("us", "UTC")
WINDOWS = pa.schema(
    [
        *(("n", pa.int64()), ("device_id", pa.string()), ("metric", pa.string()), ("entity", pa.string())),
        *(("window_start", INSTANT), ("window_end", INSTANT)),
    ]
)
IDENTITIES = pa.schema([("bronze_batch", pa.int64()), ("bronze_row", pa.int64())])
# A device, or the group: its name stands in the groups of its devices.
NEWEST = """
  with readings as (
    select device_id, metric, groups, event_time, bronze_batch, bronze_row from {readings}
      where event_time >= (select min(window_start) from asked) and event_time < (select max(window_end) from asked)
  ), found as (
    select n, r from asked join readings r on r.device_id = asked.device_id and r.metric = asked.metric
      where event_time >= window_start and event_time < window_end
    union all
    select n, r from asked join readings r on r.device_id = asked.entity where event_time >= window_start and event_time < window_end
    union all
    select n, r from asked join (select *, unnest(groups) as of_group from readings) r on r.of_group = asked.entity
      where event_time >= window_start and event_time < window_end
  )
  select n, max_by((r.bronze_batch, r.bronze_row), (r.event_time, r.bronze_batch, r.bronze_row)) from found group by n
"""
PAYLOADS = """
  select bronze_batch, bronze_row, position, payload, octet_length(payload) as bytes
  from read_parquet($files) join asked using (bronze_batch, bronze_row)
"""
# Without this a few huge messages would fill the memory; the row still says where bronze has them.
AS_MUCH_AS_FITS = """
  select * exclude (payload, bytes), case when sum(bytes) over (order by bronze_batch, bronze_row) <= {most} then payload end as payload
  from ({payloads})
"""

Identity = tuple[int, int]


@dataclass(frozen=True)
class Event:
    """`payload`: the bytes as they arrived. It and `position` are None where bronze has no such event; `payload` also beyond MOST_BYTES."""

    bronze_batch: int
    bronze_row: int
    position: str | None = None
    payload: bytes | None = None


def events(lake: Lake, keys: Sequence[Mapping[str, Any]]) -> list[Event | None]:
    """The event of each row, found by its keys; for a window that of its newest reading. None where the keys lead to no event."""
    store = open_store()
    try:
        newest = _newest(store, lake, keys)
        identities = [_identity(row) or newest.get(n) for n, row in enumerate(keys)]
        by_identity = _payloads(store, lake.tables["bronze.events"].location, {each for each in identities if each})
    finally:
        store.close()
    return [None if each is None else by_identity.get(each, Event(*each)) for each in identities]


def _identity(row: Mapping[str, Any]) -> Identity | None:
    batch, place = row.get("bronze_batch"), row.get("bronze_row")
    return None if batch is None or place is None else (batch, place)


def _newest(store: duckdb.DuckDBPyConnection, lake: Lake, keys: Sequence[Mapping[str, Any]]) -> dict[int, Identity]:
    asked = [{"n": n} | dict(row) for n, row in enumerate(keys) if None not in (row.get("window_start"), row.get("window_end"))]
    tables = [pin_table(name, lake.tables[name].location) for name in ("silver.readings", "silver.late")]
    existing = [table for table in tables if table.version is not None]
    if not asked or not existing:
        return {}
    for table in existing:
        create_view(store, table)
    store.register("asked", pa.Table.from_pylist(asked, WINDOWS))
    readings = " union all by name ".join(f'(from "{table.view}")' for table in existing)
    rows = store.execute(NEWEST.format(readings=f"({readings})")).fetchall()
    return {n: (batch, place) for n, (batch, place) in rows}


def _payloads(store: duckdb.DuckDBPyConnection, bronze: Location, wanted: set[Identity]) -> dict[Identity, Event]:
    files = [*_files(bronze, {batch for batch, _ in wanted})] if wanted and is_table(bronze) else []
    if not files:
        return {}
    store.register("asked", pa.Table.from_pylist([dict(zip(IDENTITIES.names, each, strict=True)) for each in wanted], IDENTITIES))
    query = AS_MUCH_AS_FITS.format(most=MOST_BYTES, payloads=PAYLOADS)
    return {
        (batch, place): Event(batch, place, position, payload)
        for batch, place, position, payload in store.execute(query, {"files": files}).fetchall()
    }


def _files(bronze: Location, batches: Iterable[int]) -> Iterator[str]:
    """Files whose statistics do not exclude all of the batches."""
    for add in pa.table(open_table(bronze).get_add_actions(flatten=True)).to_pylist():
        least, greatest = add.get("min.bronze_batch"), add.get("max.bronze_batch")
        if least is None or greatest is None or any(least <= batch <= greatest for batch in batches):
            yield str(bronze / add["path"])
