"""Which suites are due: by cron expressions in UTC, and by the last run of each suite in quality.results."""

from collections.abc import Callable, Sequence
from datetime import datetime

from cronsim import CronSim

from expectations.suite import Suite
from orchestration.engine.lake import Lake
from orchestration.errors import HeldError
from orchestration.quality.outcome import Cause, Run
from orchestration.storage import quality_tables
from orchestration.utc import EPOCH

PAGE = "artifacts/quality.html"


def due(lake: Lake, suites: Sequence[Suite], now: datetime) -> list[Suite]:
    """Suites whose next scheduled time after their last run has come, and suites that never ran. Missed times count once."""
    times = _next_times(lake, suites)
    return [suite for suite in suites if suite.name in times and times[suite.name] <= now]


def next_at(lake: Lake, suites: Sequence[Suite]) -> datetime | None:
    """When the next suite is due, in UTC, maybe in the past; None where no suite has a schedule."""
    return min(_next_times(lake, suites).values(), default=None)


def _next_times(lake: Lake, suites: Sequence[Suite]) -> dict[str, datetime]:
    """Return the next time of each suite. Suites without a schedule and suites that apply to no table are absent: the latter never get a
    result."""
    crons = [(suite, cron) for suite in suites if (cron := lake.conf.quality.schedule_of(suite.name)) is not None]
    if not crons:
        return {}
    # A run without a schedule does not pay a second for these imports.
    from orchestration.quality.check import checkable_tables
    from orchestration.quality.history import last_checked

    tables, checked = checkable_tables(lake.conf), last_checked(lake.conf.lake)
    usable = {suite.name: cron for suite, cron in crons if suite.expectations and any(map(suite.applies_to, tables))}
    return {name: next(CronSim(cron, checked[name])) if name in checked else EPOCH for name, cron in usable.items()}


def run_due(lake: Lake, suites: Sequence[Suite], now: datetime, tell: Callable[[str], None]) -> Run | None:
    """Check the suites that are due, and write the page beside the conf folder, as `tidemark quality` does there.

    None where no suite is due, or where another process holds the quality tables: the next time will do.
    """
    if not due(lake, suites, now):
        return None
    from orchestration.quality.check import Scope, check
    from orchestration.quality.history import last_runs
    from orchestration.quality.publish import publish, store_run

    try:
        with quality_tables.lock(lake.conf.lake):
            suites = due(lake, suites, now)
            run = check(lake, suites, now, tell, Scope(Cause.SCHEDULED, last_runs=last_runs(lake.conf.lake)))
            rows = store_run(lake, run)
    except HeldError:
        return None
    publish(lake, run, rows, lake.conf.folder.parent / PAGE)
    return run
