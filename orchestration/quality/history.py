"""quality.results: what every run found. Append only; the writer holds `quality_tables.lock`. Times are in UTC."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from expectations.suite import Expectation, Severity
from orchestration.location import Location
from orchestration.quality.outcome import Cause, Outcome, Result, Run, TableResult
from orchestration.storage import quality_tables

SAMPLES = 5
RESULTS = "quality.results"
RESULT_COLUMNS = (
    ("run_id", pa.string(), "one call of tidemark quality; sorts by time"),
    ("run_at", pa.timestamp("us", "UTC"), "when it began"),
    ("cause", pa.string(), "asked, scheduled, gate or snapshot"),
    ("table_name", pa.string(), "SQL name of the table that was judged"),
    ("table_id", pa.string(), "Delta's id of the table; null where it does not exist"),
    ("table_version", pa.int64(), "Delta version that was judged; null where the table does not exist"),
    ("found_in", pa.string(), "run that judged these rows: an earlier one where nothing came since"),
    ("since_version", pa.int64(), "only rows of later versions were judged; null for all"),
    ("suite", pa.string(), "name of the suite, that of its file"),
    ("expectation", pa.string(), "type of the expectation in Great Expectations"),
    ("columns", pa.list_(pa.string()), "columns it looks at; empty where it looks at the whole table"),
    ("severity", pa.string(), "critical, warning or info"),
    ("is_success", pa.bool_(), "null where there were no rows to judge"),
    ("observed", pa.string(), "what was found, in words"),
    ("unexpected_percent", pa.float64(), "of rows in which the column is not null, 0 to 100; null where rows are not judged one by one"),
    ("details", pa.string(), "JSON: description, kwargs, samples of rows that fail; more are in quality.failed_rows"),
)
RESULT_SCHEMA = quality_tables.schema_of(RESULT_COLUMNS)
"""Grain: one expectation of one suite on one table in one run."""
ALL_SUITES = [Cause.ASKED.value, Cause.SCHEDULED.value]
"""Causes of runs that later runs continue. A run on a snapshot is about the past, and a gate evaluates critical expectations only."""


@dataclass(frozen=True)
class LastRun:
    """What a suite found in its last run on a table, and at which Delta version."""

    table_id: str
    version: int
    results: tuple[Result, ...]


def append_results(lake: Location, run: Run) -> None:
    """Append the run."""
    rows = [_row(run, table, result) for table in run.tables for result in table.results]
    quality_tables.append(lake, RESULTS, pa.Table.from_pylist(rows, RESULT_SCHEMA))


def last_checked(lake: Location) -> dict[str, datetime]:
    """When each suite last ran, by its name; a suite that never ran is absent."""
    return {row["suite"]: row["run_at_max"] for row in _newest(lake, "suite")}


def last_runs(lake: Location) -> dict[tuple[str, str], LastRun]:
    """The last run of each suite on each table, by the names of table and suite; empty before the first run."""
    last = {(row["table_name"], row["suite"], row["run_at_max"]) for row in _newest(lake, "table_name", "suite")}
    if not last:
        return {}
    times = sorted({run_at for *_, run_at in last})
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in quality_tables.read(lake, RESULTS, RESULT_SCHEMA, where=[("run_at", "in", times)]).to_pylist():
        if (row["table_name"], row["suite"], row["run_at"]) in last:
            grouped.setdefault((row["table_name"], row["suite"]), []).append(row)
    return {
        key: LastRun(rows[0]["table_id"], rows[0]["table_version"], tuple(map(result_of, rows)))
        for key, rows in grouped.items()
        if rows[0].get("table_id") is not None
    }


def _newest(lake: Location, *keys: str) -> list[dict[str, Any]]:
    """One row for each combination of keys, with `run_at_max`."""
    runs = quality_tables.read(lake, RESULTS, RESULT_SCHEMA, [*keys, "run_at"], [("cause", "in", ALL_SUITES)])
    rows: list[dict[str, Any]] = runs.group_by(list(keys)).aggregate([("run_at", "max")]).to_pylist()
    return rows


def result_of(row: Mapping[str, Any]) -> Result:
    """The result that a row of quality.results holds."""
    details = json.loads(row["details"])
    expectation = Expectation(row["expectation"], details["description"], Severity(row["severity"]), details["kwargs"])
    outcome = Outcome(row["is_success"], row["observed"], row["unexpected_percent"], tuple(details.get("samples", ())))
    # Null in runs that are older than the column found_in.
    return Result(row["suite"], expectation, outcome, row["since_version"], row.get("found_in") or row["run_id"])


def _row(run: Run, table: TableResult, result: Result) -> dict[str, Any]:
    expectation, outcome = result.expectation, result.outcome
    details = json.dumps(dict(_details(result)), ensure_ascii=False, default=str)
    values = (
        *(run.run_id, run.run_at, run.cause.value, table.table, table.table_id, table.version),
        *(result.found_in or run.run_id, result.since, result.suite),
        *(expectation.type, list(expectation.columns), expectation.severity.value),
        *(outcome.is_success, outcome.observed, outcome.unexpected_percent, details),
    )
    return dict(zip(RESULT_SCHEMA.names, values, strict=True))


def _details(result: Result) -> Iterator[tuple[str, Any]]:
    yield "description", result.expectation.description
    yield "kwargs", dict(result.expectation.kwargs)
    if result.outcome.samples:
        yield "samples", [dict(sample) for sample in result.outcome.samples[:SAMPLES]]
