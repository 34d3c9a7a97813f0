"""quality.failed_rows: rows that fail, each with the event it came from. Append only; the writer holds `quality_tables.lock`."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.quality.lineage import Event, events
from orchestration.quality.outcome import Identity, Result, Run, TableResult, identity
from orchestration.rendering import visible
from orchestration.storage import quality_tables
from orchestration.storage.delta import is_table, path_of

FAILED_ROWS = "quality.failed_rows"
FAILED_ROW_COLUMNS = (
    ("run_id", pa.string(), "run that judged the row: found_in of quality.results"),
    ("run_at", pa.timestamp("us", "UTC"), "when it began"),
    ("table_name", pa.string(), "SQL name of the table that was judged"),
    ("table_version", pa.int64(), "Delta version that was judged"),
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
FAILED_ROW_SCHEMA = quality_tables.schema_of(FAILED_ROW_COLUMNS)
"""Grain: one failing row of one expectation of one suite on one table in one run; at most 20 for each failure."""

STATISTICS = {"delta.dataSkippingStatsColumns": "run_id,run_at,table_name"}
"""Otherwise the log would hold the minimum and maximum of every column, payloads included."""


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
    keys = [
        result.outcome.keys[n] if n < len(result.outcome.keys) else {} for _, result in failed for n in range(len(result.outcome.samples))
    ]
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
