"""quality.failed_rows: rows that fail, each with the event it came from. Append only; the writer holds `quality_tables.lock`."""

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import duckdb
import pyarrow as pa

from bronze.schema import INSTANT, declared
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.quality import quality_tables
from orchestration.quality.outcome import Identity, Result, Run, TableResult, identity
from orchestration.quality.store import create_view, open_store, pin_table
from orchestration.rendering import visible
from orchestration.storage.delta import in_log, is_table, open_table, path_of
from orchestration.storage.duckdb_view import readable

FAILED_ROWS = "quality.failed_rows"
FAILED_ROW_SCHEMA = declared(
    ("run_id", pa.string(), "run that checked the row: found_in of quality.results"),
    ("run_at", INSTANT, "when it began"),
    ("table_name", pa.string(), "SQL name of the table that was checked"),
    ("table_version", pa.int64(), "Delta version that was checked"),
    ("suite", pa.string(), "name of the suite, that of its file"),
    ("expectation", pa.string(), "type of the expectation in Great Expectations"),
    ("description", pa.string(), "what should be true, in one sentence"),
    ("severity", pa.string(), "critical, warning or info"),
    ("row_values", pa.map_(pa.string(), pa.string()), "the row by column, as text: what the suite shows and what the expectation looks at"),
    ("bronze_batch", pa.int64(), "lineage: identity of the event; of a window that of its newest reading; null where nothing leads to one"),
    ("bronze_row", pa.int64(), "lineage: identity of the event"),
    ("position", pa.string(), "from the event: where it stood in its source"),
    ("payload", pa.binary(), "from the event, byte for byte; null where bronze does not have it, or beyond 32 MB of them in a run"),
)
"""Grain: one failing row of one expectation of one suite on one table in one run; at most 20 for each failure."""

STATISTICS = {"delta.dataSkippingStatsColumns": "run_id,run_at,table_name"}
"""Otherwise the log would hold the minimum and maximum of every column, payloads included."""

MOST_BYTES = 32 * 2**20
NAMES = [("n", pa.int64()), ("device_id", pa.string()), ("metric", pa.string()), ("entity", pa.string())]
WINDOWS = pa.schema([*NAMES, ("window_start", INSTANT), ("window_end", INSTANT)])
IDENTITIES = pa.schema([("bronze_batch", pa.int64()), ("bronze_row", pa.int64())])
# A device, or the group: its name stands in the groups of its devices.
NEWEST = """
  with readings as (
    select device_id, metric, groups, event_time, bronze_batch, bronze_row from {readings}
      where event_time >= (select min(window_start) from asked) and event_time < (select max(window_end) from asked)
  ), named as (
    select device_id as name, metric as of_metric, * from readings
    union all select device_id, null, * from readings
    union all select unnest(groups), null, * from readings
  )
  select n, max_by((r.bronze_batch, r.bronze_row), (r.event_time, r.bronze_batch, r.bronze_row))
  from asked join named r on r.name = coalesce(entity, asked.device_id) and r.of_metric is not distinct from asked.metric
  where event_time >= window_start and event_time < window_end group by n
"""
# Without a bound a few huge messages would fill the memory; the row still says where bronze has them.
PAYLOADS = """
  select bronze_batch, bronze_row, position,
    case when sum(octet_length(payload)) over (order by bronze_batch, bronze_row) <= $most then payload end
  from read_parquet($files, hive_partitioning = false) join asked using (bronze_batch, bronze_row)
"""


@dataclass(frozen=True)
class Event:
    """`payload`: the bytes as they arrived. It and `position` are None where bronze has no such event; `payload` also beyond MOST_BYTES."""

    bronze_batch: int
    bronze_row: int
    position: str | None = None
    payload: bytes | None = None


@dataclass(frozen=True)
class FailedRow:
    """A row as texts by column, and the event that it came from; None where no event is known."""

    values: Mapping[str, str]
    event: Event | None


FailedRows = Mapping[Identity, Sequence[FailedRow]]


def append_failed_rows(lake: Lake, run: Run) -> FailedRows:
    """Append the rows that this run found. Returns every row that fails now: where a table has no new rows, those of an earlier run."""
    failed = [(table, result) for table in run.tables for result in table.failed]
    new = _with_events(lake, [(table, result) for table, result in failed if result.found_in is None])
    rows = [_row(run, table, result, row) for table, result in failed for row in new.get(identity(table.table, result), ())]
    folder = lake.conf.lake
    if rows or not is_table(path_of(folder, FAILED_ROWS)):
        quality_tables.append(folder, FAILED_ROWS, pa.Table.from_pylist(rows, FAILED_ROW_SCHEMA), STATISTICS)
    return new | _of_earlier_runs(folder, failed)


def _with_events(lake: Lake, failed: Sequence[tuple[TableResult, Result]]) -> dict[Identity, list[FailedRow]]:
    keys = [key for _, result in failed for key, _ in zip_longest(result.outcome.keys, result.outcome.samples, fillvalue=dict[str, Any]())]
    source = iter(_events(lake, keys))
    return {
        identity(table.table, result): [FailedRow(sample, next(source)) for sample in result.outcome.samples] for table, result in failed
    }


def _events(lake: Lake, keys: Sequence[Mapping[str, Any]]) -> list[Event | None]:
    """A damaged table, from which only payloads are read, must not lose the results of the run."""
    try:
        return events(lake, keys)
    except (duckdb.Error, OSError) as error:
        reason = visible(next(iter(str(error).splitlines()), ""))
        logging.getLogger(__name__).warning("rows that fail are kept without their payloads, which could not be read: %s", reason)
        return [None] * len(keys)


def _of_earlier_runs(lake: Location, failed: Sequence[tuple[TableResult, Result]]) -> dict[Identity, list[FailedRow]]:
    wanted = {(result.found_in, *identity(table.table, result)): identity(table.table, result) for table, result in failed}
    runs = sorted({result.found_in for _, result in failed if result.found_in})
    kept = quality_tables.read(lake, FAILED_ROWS, FAILED_ROW_SCHEMA, where=[("run_id", "in", runs)]).to_pylist() if runs else []
    rows: dict[Identity, list[FailedRow]] = {}
    for row in kept:
        key = (row["run_id"], row["table_name"], row["suite"], row["expectation"], row["description"])
        if key in wanted:
            event = None if row["bronze_batch"] is None else Event(*(row[name] for name in FAILED_ROW_SCHEMA.names[-4:]))
            rows.setdefault(wanted[key], []).append(FailedRow(dict(row["row_values"]), event))
    return rows


def _row(run: Run, table: TableResult, result: Result, row: FailedRow) -> dict[str, Any]:
    expectation = result.expectation
    values = (
        *(run.run_id, run.run_at, table.table, table.version, result.suite),
        *(expectation.type, expectation.description, expectation.severity.value, list(row.values.items())),
        *(vars(row.event).values() if row.event else [None] * 4),
    )
    return dict(zip(FAILED_ROW_SCHEMA.names, values, strict=True))


def events(lake: Lake, keys: Sequence[Mapping[str, Any]]) -> list[Event | None]:
    """The event of each row, found by its keys; for a window that of its newest reading. None where the keys lead to no event."""
    with closing(open_store()) as store:
        newest = _newest(store, lake, keys)
        own = ((row.get("bronze_batch"), row.get("bronze_row")) for row in keys)
        identities = [newest.get(n) if batch is None or row is None else (batch, row) for n, (batch, row) in enumerate(own)]
        payloads = _payloads(store, lake.tables["bronze.events"].location, set(filter(None, identities)))
    return [identity and payloads.get(identity, Event(*identity)) for identity in identities]


def _newest(store: duckdb.DuckDBPyConnection, lake: Lake, keys: Sequence[Mapping[str, Any]]) -> dict[int, tuple[int, int]]:
    asked = [{"n": n} | dict(row) for n, row in enumerate(keys) if None not in (row.get("window_start"), row.get("window_end"))]
    tables = [pin_table(name, lake.table_path(name)) for name in ("silver.readings", "silver.late")]
    existing = [table for table in tables if table.version is not None]
    if not asked or not existing:
        return {}
    for table in existing:
        create_view(store, table)
    store.register("asked", pa.Table.from_pylist(asked, WINDOWS))
    readings = " union all by name ".join(f'(from "{table.view}")' for table in existing)
    rows = store.execute(NEWEST.format(readings=f"({readings})")).fetchall()
    return {n: (batch, row) for n, (batch, row) in rows}


def _payloads(store: duckdb.DuckDBPyConnection, bronze: Location, wanted: set[tuple[int, int]]) -> dict[tuple[int, int], Event]:
    files = readable(store, _files(bronze, {batch for batch, _ in wanted}) if wanted and is_table(bronze) else {})
    if not files:
        return {}
    store.register("asked", pa.Table.from_pylist([{"bronze_batch": batch, "bronze_row": row} for batch, row in wanted], IDENTITIES))
    return {(event[0], event[1]): Event(*event) for event in store.execute(PAYLOADS, {"files": files, "most": MOST_BYTES}).fetchall()}


def _files(bronze: Location, batches: Collection[int]) -> dict[Location, int]:
    """List files whose statistics do not exclude all of the batches, with their sizes."""
    files = {}
    for add in in_log(open_table(bronze), "path", "size_bytes", "min.bronze_batch", "max.bronze_batch").to_pylist():
        least, greatest = add.get("min.bronze_batch"), add.get("max.bronze_batch")
        if least is None or greatest is None or any(least <= batch <= greatest for batch in batches):
            files[bronze / add["path"]] = add["size_bytes"]
    return files
