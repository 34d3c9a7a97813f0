"""quality.results: what every run found, kept. Append only; who writes it holds `<lake>/quality`, as two processes would lose rows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from orchestration.lake import Lake
from orchestration.quality.outcome import Result, Run, TableResult
from orchestration.tables import Table, ensure

RESULTS = """
  run_id STRING COMMENT 'one call of tidemark quality; sorts by time',
  run_at TIMESTAMP COMMENT 'when it began, UTC',
  table_name STRING COMMENT 'SQL name of the table that was judged',
  table_version BIGINT COMMENT 'Delta version that was judged; null where the table does not exist',
  suite STRING COMMENT 'name of the suite, that of its file in expectations',
  expectation STRING COMMENT 'type of the expectation in Great Expectations',
  columns ARRAY<STRING> COMMENT 'columns it looks at; empty where it looks at the whole table',
  severity STRING COMMENT 'critical, warning or info',
  is_success BOOLEAN COMMENT 'null where there were no rows to judge',
  observed STRING COMMENT 'what was found, in words',
  unexpected_percent DOUBLE COMMENT 'of rows in which the column is not null, 0 to 100; null where rows are not judged one by one',
  details STRING COMMENT 'JSON: description, kwargs, samples of rows that fail'
"""
"""Grain: one expectation of one suite on one table in one run."""


def results_table(lake: Path) -> Table:
    """Where the results are."""
    return Table("quality.results", lake / "quality" / "results", RESULTS, ("run_id", "run_at"))


def append_results(lake: Lake, run: Run) -> None:
    """Append the run; raises TidemarkError where the table has other columns than this version writes."""
    table = results_table(lake.conf.lake)
    ensure(lake.spark, table)
    result_rows(lake, run).coalesce(1).write.format("delta").mode("append").save(str(table.path))


def result_rows(lake: Lake, run: Run) -> DataFrame:
    """The run as rows of quality.results."""
    rows = [_row(run, table, result) for table in run.tables for result in table.results]
    return lake.spark.createDataFrame(rows, RESULTS)


def _row(run: Run, table: TableResult, result: Result) -> tuple[Any, ...]:
    expectation, outcome = result.expectation, result.outcome
    return (
        *(run.run_id, run.run_at, table.table, table.version, result.suite, expectation.type, list(expectation.columns)),
        *(expectation.severity.value, outcome.is_success, outcome.observed, outcome.unexpected_percent),
        json.dumps(dict(_details(result)), ensure_ascii=False),
    )


def _details(result: Result) -> Iterator[tuple[str, Any]]:
    yield "description", result.expectation.description
    yield "kwargs", dict(result.expectation.kwargs)
    if result.outcome.samples:
        yield "samples", [dict(sample) for sample in result.outcome.samples]
