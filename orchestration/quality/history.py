"""quality.results: what every run found, kept. Append only; who writes it holds `<lake>/quality`, as two processes would lose rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from expectations.suite import Expectation, Severity
from orchestration.quality.outcome import Outcome, Result, Run, TableResult
from orchestration.storage.delta import OF_LOG

SAMPLES = 5
MOST_FILES = 100

COLUMNS = (
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
SCHEMA = pa.schema([pa.field(name, kind, metadata={"comment": comment}) for name, kind, comment in COLUMNS])
"""Grain: one expectation of one suite on one table in one run."""


@dataclass(frozen=True)
class Look:
    """What a suite found when it last looked at a table, and at which version."""

    table_id: str
    version: int
    results: tuple[Result, ...]


def results_path(lake: Path) -> Path:
    """Where the results are."""
    return lake / "quality" / "results"


def append_results(lake: Path, run: Run) -> None:
    """Append the run."""
    rows = [_row(run, table, result) for table in run.tables for result in table.results]
    append(results_path(lake), rows, SCHEMA)


def append(path: Path, rows: Sequence[Mapping[str, Any]], schema: pa.Schema, **configuration: str) -> None:
    """Append to a table that grows with each run; columns that it lacks are added. A comment stays as it was when its column was made."""
    known = {field.name for field in DeltaTable(path).schema().fields} if DeltaTable.is_deltatable(str(path)) else set()
    # deltalake refuses another comment than the table has.
    fields = [field.remove_metadata() if field.name in known else field for field in schema]
    arriving = pa.Table.from_pylist([*map(dict, rows)], pa.schema(fields))
    write_deltalake(path, arriving, mode="append", schema_mode="merge", configuration=OF_LOG | configuration)
    _compact(path)


def _compact(path: Path) -> None:
    """Make small files large once there are many: every run adds one, and every look reads them all."""
    table = DeltaTable(path)
    if len(table.file_uris()) > MOST_FILES:
        table.optimize.compact()
        table.vacuum(dry_run=False)  # what was superseded a week ago


def looks(lake: Path) -> dict[tuple[str, str], Look]:
    """The last look of each suite at each table, by the names of both; none where nothing was ever looked at."""
    path = results_path(lake)
    if not DeltaTable.is_deltatable(str(path)):
        return {}
    of_now = [("cause", "not in", ["snapshot", "gate"])]
    found = pa.table(DeltaTable(path).to_pyarrow_table(columns=["run_at", "table_name", "suite"], filters=of_now))
    newest = found.group_by(["table_name", "suite"]).aggregate([("run_at", "max")]).to_pylist()
    runs = {each["run_at_max"] for each in newest}
    last = {(each["table_name"], each["suite"], each["run_at_max"]) for each in newest}
    rows = pa.table(DeltaTable(path).to_pyarrow_table(filters=[("run_at", "in", sorted(runs))])).to_pylist() if runs else []
    of_look: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if (row["table_name"], row["suite"], row["run_at"]) in last:
            of_look.setdefault((row["table_name"], row["suite"]), []).append(row)
    return {
        key: Look(rows[0]["table_id"], rows[0]["table_version"], tuple(map(result_of, rows)))
        for key, rows in of_look.items()
        if rows[0].get("table_id") is not None
    }


def result_of(row: Mapping[str, Any]) -> Result:
    """A row of quality.results as it was found."""
    details = json.loads(row["details"])
    expectation = Expectation(row["expectation"], details["description"], Severity(row["severity"]), details["kwargs"])
    outcome = Outcome(row["is_success"], row["observed"], row["unexpected_percent"], tuple(details.get("samples", ())))
    # Runs before there was found_in: null.
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
    return dict(zip(SCHEMA.names, values, strict=True))


def _details(result: Result) -> Iterator[tuple[str, Any]]:
    yield "description", result.expectation.description
    yield "kwargs", dict(result.expectation.kwargs)
    if result.outcome.samples:
        yield "samples", [dict(sample) for sample in result.outcome.samples[:SAMPLES]]
