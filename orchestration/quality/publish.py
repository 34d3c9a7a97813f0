"""Stores a run in the quality tables, under their lock; then writes the report, which may be slow."""

from pathlib import Path

from orchestration.engine.lake import Lake
from orchestration.quality.failed_rows import FailedRows, append_failed_rows
from orchestration.quality.history import append_results, trends
from orchestration.quality.outcome import Run
from orchestration.quality.report import write_report


def store_run(lake: Lake, run: Run) -> FailedRows:
    """Append the run to quality.results and quality.failed_rows; returns the rows that fail. The caller holds `quality_tables.lock`."""
    append_results(lake.conf.lake, run)
    return append_failed_rows(lake, run)


def publish(lake: Lake, run: Run, rows: FailedRows, report: Path) -> None:
    """Write the page."""
    write_report(run, report, rows, trends(lake.conf.lake))
