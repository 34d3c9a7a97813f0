"""Which suites are due: by cron expressions in UTC, and by when each was last checked, as quality.results tells."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from cronsim import CronSim

from expectations.suite import Suite
from orchestration.engine.lake import Lake
from orchestration.errors import HeldError
from orchestration.quality.outcome import Cause, Run
from orchestration.storage.delta import is_table, open_table
from orchestration.storage.lease import sole_writer

LOOKS = (Cause.ASKED.value, Cause.SCHEDULED.value)
"""A look at a snapshot is of the past, and one of a gate is not at everything."""

PAGE = "artifacts/quality.html"
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def due(lake: Lake, suites: Sequence[Suite], now: datetime) -> list[Suite]:
    """Those whose next time after they were last checked has come, however many times have; and those that never were."""
    times = _next_times(lake, suites)
    return [suite for suite in suites if suite.name in times and times[suite.name] <= now]


def next_at(lake: Lake, suites: Sequence[Suite]) -> datetime | None:
    """When the next suite is due, maybe in the past; None: none ever is."""
    return min(_next_times(lake, suites).values(), default=None)


def _next_times(lake: Lake, suites: Sequence[Suite]) -> dict[str, datetime]:
    """By suite; not of those that no table has, since they never get a result, nor of those that are checked by hand only."""
    crons = [(suite, cron) for suite in suites if (cron := lake.conf.quality.schedule_of(suite.name)) is not None]
    if not crons:
        return {}
    from orchestration.quality.check import judgeable  # it takes a second: runs without a schedule do without

    tables, checked = judgeable(lake), last_checked(lake.conf.lake)
    judged = {suite.name: cron for suite, cron in crons if suite.expectations and any(map(suite.applies_to, tables))}
    return {name: next(CronSim(cron, checked[name])) if name in checked else LONG_AGO for name, cron in judged.items()}


def last_checked(lake: Path) -> dict[str, datetime]:
    """By suite."""
    from orchestration.quality.history import results_path

    path = results_path(lake)
    if not is_table(path):
        return {}
    found = pa.table(open_table(path).to_pyarrow_table(columns=["suite", "run_at"], filters=[("cause", "in", list(LOOKS))]))
    newest = found.group_by("suite").aggregate([("run_at", "max")]).to_pylist()
    return {each["suite"]: each["run_at_max"] for each in newest}


def run_due(lake: Lake, suites: Sequence[Suite], now: datetime, tell: Callable[[str], None]) -> Run | None:
    """Check the suites that are due, and write the page beside the conf folder, as `tidemark quality` does there.

    None where none is due, or where somebody else looks at the tables now: the next time will do.
    """
    if not due(lake, suites, now):
        return None
    from orchestration.quality.check import Scope, check
    from orchestration.quality.history import looks
    from orchestration.quality.publish import Places, keep, publish

    try:
        with sole_writer(lake.conf.lake / "quality"):
            suites = due(lake, suites, now)
            run = check(lake, suites, now, tell, Scope(Cause.SCHEDULED, looks=looks(lake.conf.lake)))
            rows = keep(lake, run)
    except HeldError:
        return None
    publish(lake, run, rows, Places(lake.conf.folder.parent / PAGE, webhook=lake.conf.quality.webhook))
    return run
