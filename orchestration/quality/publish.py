"""What becomes of a run: kept under the lock of the quality tables, then told to people and machines, which may take its time."""

from dataclasses import dataclass
from pathlib import Path

from orchestration.engine.lake import Lake
from orchestration.quality.failed_rows import Found, keep_failed_rows
from orchestration.quality.history import append_results
from orchestration.quality.junit import write_junit
from orchestration.quality.outcome import Cause, Run
from orchestration.quality.report import Evidence, write_report
from orchestration.quality.trend import changes, trends
from orchestration.quality.webhook import tell


@dataclass(frozen=True)
class Places:
    """Where a run is told: a page, a file of JUnit XML, a URL that gets a POST when something changed its state."""

    report: Path
    junit: Path | None = None
    webhook: str | None = None


def keep(lake: Lake, run: Run) -> Found:
    """Append it to quality.results and quality.failed_rows, whose lock the caller holds; the rows that fail."""
    append_results(lake.conf.lake, run)
    return keep_failed_rows(lake, run)


def publish(lake: Lake, run: Run, rows: Found, places: Places) -> None:
    """Write the files, then tell of changes; a webhook that nobody answers takes up to 20 s and breaks nothing."""
    known = trends(lake.conf.lake)
    write_report(run, places.report, Evidence(rows, known))
    if places.junit:
        write_junit(run, places.junit)
    changed = [] if run.cause == Cause.SNAPSHOT else list(changes(run, known))
    if places.webhook and changed:
        tell(places.webhook, run, changed, places.report)
