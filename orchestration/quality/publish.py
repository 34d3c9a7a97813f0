"""Stores a run in the quality tables, under their lock; then writes the report and posts changes, which may be slow."""

from pathlib import Path

from orchestration.engine.lake import Lake
from orchestration.quality.failed_rows import FailedRows, append_failed_rows
from orchestration.quality.history import append_results, changes, trends
from orchestration.quality.junit import write_junit
from orchestration.quality.outcome import Cause, Run
from orchestration.quality.report import write_report
from orchestration.quality.webhook import post_changes


def store_run(lake: Lake, run: Run) -> FailedRows:
    """Append the run to quality.results and quality.failed_rows; returns the rows that fail. The caller holds `quality_tables.lock`."""
    append_results(lake.conf.lake, run)
    return append_failed_rows(lake, run)


def publish(lake: Lake, run: Run, rows: FailedRows, report: Path, junit: Path | None = None) -> None:
    """Write the page and the JUnit XML, then post changes. A webhook that does not answer takes up to 20 s and breaks nothing."""
    history, webhook = trends(lake.conf.lake), lake.conf.quality.webhook
    write_report(run, report, rows, history)
    if junit:
        write_junit(run, junit)
    changed = [] if run.cause == Cause.SNAPSHOT else list(changes(run, history))
    if webhook and changed:
        post_changes(webhook, run, changed, report)
