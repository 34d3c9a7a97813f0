"""quality.results: the results of every run, in UTC, and since when something fails. Append only, under `quality_tables.lock`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

import pyarrow as pa

from bronze.schema import INSTANT, declared
from expectations.suite import Expectation, Severity
from orchestration.location import Location
from orchestration.quality import quality_tables
from orchestration.quality.outcome import Cause, Identity, Outcome, Result, Run, TableResult, identity
from orchestration.quality.store import create_view, open_store, pin_table
from orchestration.storage.delta import path_of

SAMPLES = 5
RESULTS = "quality.results"
RESULT_SCHEMA = declared(
    ("run_id", pa.string(), "one call of tidemark quality; sorts by time"),
    ("run_at", INSTANT, "when it began"),
    ("cause", pa.string(), "asked, gate or snapshot; scheduled in runs of earlier versions"),
    ("table_name", pa.string(), "SQL name of the table that was checked"),
    ("table_id", pa.string(), "Delta's id of the table; null where it does not exist"),
    ("table_version", pa.int64(), "Delta version that was checked; null where the table does not exist"),
    ("found_in", pa.string(), "run that checked these rows: an earlier one where nothing came since"),
    ("since_version", pa.int64(), "only rows of later versions were checked; null for all"),
    ("suite", pa.string(), "name of the suite, that of its file"),
    ("expectation", pa.string(), "type of the expectation in Great Expectations"),
    ("columns", pa.list_(pa.string()), "columns it looks at; empty where it looks at the whole table"),
    ("severity", pa.string(), "critical, warning or info"),
    ("is_success", pa.bool_(), "null where there were no rows to check"),
    ("observed", pa.string(), "what was found, in words"),
    ("unexpected_percent", pa.float64(), "of rows in which the column is not null, 0 to 100; null where rows are not checked one by one"),
    ("details", pa.string(), "JSON: description, kwargs, samples of rows that fail; more are in quality.failed_rows"),
)
"""Grain: one expectation of one suite on one table in one run."""
ALL_SUITES = [Cause.ASKED.value, "scheduled"]
"""Causes of runs that later runs continue. A run on a snapshot is about the past, and a gate evaluates critical expectations only."""

MOST_RUNS = 200
# Without runs on snapshots. By suite and table: some run with every batch, others once a day.
POINTS = """
  with runs as (select distinct run_id, table_name, suite from {results} where cause <> 'snapshot'),
  newest as (from runs qualify row_number() over (partition by table_name, suite order by run_id desc) <= {most})
  select table_name, suite, expectation, description,
    list((run_id, run_at, is_success, unexpected_percent, severity, case when is_last then observed end) order by run_at)
  from (select *, details ->> '$.description' as description,
      row_number() over (partition by table_name, suite, expectation, details ->> '$.description' order by run_at desc) = 1 as is_last
    from {results} semi join newest using (run_id, table_name, suite))
  group by all
"""


@dataclass(frozen=True)
class LastRun:
    """Results of the last run of a suite on a table, the Delta version it read, and when it began."""

    table_id: str
    version: int
    results: tuple[Result, ...]
    run_at: datetime


@dataclass(frozen=True)
class Point:
    """Result of one run for one expectation; see Outcome. `observed`: of the newest run alone."""

    run_id: str
    run_at: datetime
    is_success: bool | None
    unexpected_percent: float | None
    severity: str = Severity.CRITICAL.value
    observed: str | None = None


@dataclass(frozen=True)
class Streak:
    """Runs in a row, up to the newest, in which an expectation failed. `is_all`: it never passed in the runs that are kept."""

    first: Point
    runs: int
    is_all: bool


Trends = Mapping[Identity, Sequence[Point]]


def append_results(lake: Location, run: Run) -> None:
    """Append a row for each result; the caller holds `quality_tables.lock`."""
    rows = [_row(run, table, result) for table in run.tables for result in table.results]
    quality_tables.append(lake, RESULTS, pa.Table.from_pylist(rows, RESULT_SCHEMA))


def last_checked(lake: Location) -> dict[str, datetime]:
    """When each suite last ran, by its name; a suite that never ran is absent."""
    return {row["suite"]: row["run_at_max"] for row in _newest(lake, "suite")}


def last_runs(lake: Location) -> dict[tuple[str, str], LastRun]:
    """The last run of each suite on each table, by the names of table and suite; empty before the first run."""
    newest = {(row["table_name"], row["suite"]): row["run_at_max"] for row in _newest(lake, "table_name", "suite")}
    where = [("run_at", "in", sorted(set(newest.values())))]
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in quality_tables.read(lake, RESULTS, RESULT_SCHEMA, where=where).to_pylist() if newest else []:
        key = row["table_name"], row["suite"]
        if row["run_at"] == newest.get(key) and row.get("table_id") is not None:
            grouped.setdefault(key, []).append(row)
    return {
        key: LastRun(rows[0]["table_id"], rows[0]["table_version"], tuple(map(result_of, rows)), newest[key])
        for key, rows in grouped.items()
    }


def trends(lake: Location) -> Trends:
    """Points of each expectation, oldest first; empty before the first run."""
    results = pin_table(RESULTS, path_of(lake, RESULTS))
    if results.version is None:
        return {}
    with closing(open_store()) as store:
        create_view(store, results)
        rows = store.execute(POINTS.format(results=results.view, most=MOST_RUNS)).fetchall()
    return {tuple(key): [Point(*point) for point in points] for *key, points in rows}


def streak(points: Sequence[Point]) -> Streak | None:
    """None if the expectation passed in the newest run that could check it."""
    decided = [point for point in points if point.is_success is not None]
    failing = [*takewhile(lambda point: not point.is_success, reversed(decided))]
    return Streak(failing[-1], len(failing), len(failing) == len(decided)) if failing else None


def fixed(run: Run, history: Trends) -> Iterator[tuple[TableResult, Result]]:
    """Yield the expectations that hold and failed in the last run before that could check them."""
    for table in run.tables:
        for result in table.results:
            points = history.get(identity(table.table, result), ())
            before = [point.is_success for point in points if point.run_at < run.run_at and point.is_success is not None]
            if result.outcome.is_success and before and not before[-1]:
                yield table, result


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
    details: dict[str, Any] = {"description": expectation.description, "kwargs": dict(expectation.kwargs)}
    if outcome.samples:
        details["samples"] = [dict(sample) for sample in outcome.samples[:SAMPLES]]
    values = (
        *(run.run_id, run.run_at, run.cause.value, table.table, table.table_id, table.version),
        *(result.found_in or run.run_id, result.since, result.suite),
        *(expectation.type, list(expectation.columns), expectation.severity.value),
        *(outcome.is_success, outcome.observed, outcome.unexpected_percent),
        json.dumps(details, ensure_ascii=False, default=str),
    )
    return dict(zip(RESULT_SCHEMA.names, values, strict=True))
