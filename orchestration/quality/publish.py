"""Stores a run in the quality tables, under their lock; then writes the report and posts changes, which may be slow."""

from dataclasses import dataclass
from pathlib import Path

from orchestration.engine.lake import Lake
from orchestration.quality.failed_rows import FailedRows, append_failed_rows
from orchestration.quality.history import append_results
from orchestration.quality.junit import write_junit
from orchestration.quality.outcome import Cause, Run
from orchestration.quality.report import Evidence, write_report
from orchestration.quality.trend import changes, trends
from orchestration.quality.webhook import post_changes


@dataclass(frozen=True)
class Places:
    """Where a run is published: an HTML page, a JUnit XML file, a URL that gets a POST when a state changed."""

    report: Path
    junit: Path | None = None
    webhook: str | None = None


def store_run(lake: Lake, run: Run) -> FailedRows:
    """Append the run to quality.results and quality.failed_rows; returns the rows that fail. The caller holds `quality_tables.lock`."""
    append_results(lake.conf.lake, run)
    return append_failed_rows(lake, run)


def publish(lake: Lake, run: Run, rows: FailedRows, places: Places) -> None:
    """Write the files, then post changes. A webhook that does not answer takes up to 20 s and breaks nothing."""
    history = trends(lake.conf.lake)
    write_report(run, places.report, Evidence(rows, history))
    if places.junit:
        write_junit(run, places.junit)
    changed = [] if run.cause == Cause.SNAPSHOT else list(changes(run, history))
    if places.webhook and changed:
        post_changes(places.webhook, run, changed, places.report)
