"""Idle groups: when no reading has come for `idle_close_seconds`, a tick closes the windows that are still open.

A tick is an instant in `ops.ticks`, not an event: it moves the watermark of one gold stream past the end of every window
that its readings can have opened, and is in none of them.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import inf, isinf

from gold.windows.aggregates import by_metrics
from gold.windows.calendar import window_of
from gold.windows.spec import Group
from orchestration.storage.delta import ask, instant, literal, open_table
from orchestration.storage.ops_tables import TICKS, Tick
from orchestration.storage.tables import LakeStore
from orchestration.storage.views import of_groups
from orchestration.utc import from_micros, to_micros
from silver.metric import Metric

LONG_AGO = -(2**62)
SECOND = 1_000_000
NEWEST = """
  select arrow_cast(max({clock}), 'Int64') as newest from (
    select unnest(groups) as device_group, metric, event_time, ingested_at from readings where {which}
  ) where {counts}
"""


def patience_seconds(groups: Sequence[Group]) -> float:
    """How long the least patient group of a stream waits; infinite where none closes when idle."""
    return min((group.idle_close_seconds for group in groups if group.idle_close_seconds is not None), default=inf)


def tick_if_idle(lake: LakeStore, stream: str, groups: Sequence[Group], now: datetime) -> bool:
    """Tick the stream if its readings stopped coming long enough ago and it was not ticked since. True if it was."""
    patience = patience_seconds(groups)
    if isinf(patience):
        return False
    metrics, lateness = [lake.conf.metrics[name] for group in groups for name in group.metrics], max(g.lateness_seconds for g in groups)
    reach, folder = timedelta(seconds=max(metric.longest_seconds for metric in metrics) + lateness), lake.conf.lake
    ticked = max((tick.event_time for tick in TICKS.rows(folder, [("stream", "=", stream)])), default=None)
    done = LONG_AGO if ticked is None else to_micros(ticked - reach)
    then = to_micros(now - timedelta(seconds=patience))
    counts = " or ".join(f"{of_groups(names)} and metric in {literal(metrics)}" for metrics, names in by_metrics(groups).items())
    ahead = lake.conf.ahead_of(stream)
    clock = "event_time" if ahead is None else f"least(event_time, ingested_at + interval '{ahead} seconds')"
    readings = {"readings": open_table(lake.table_path("silver.readings"))}

    def newest(which: str) -> int | None:
        answer: int | None = ask(NEWEST.format(clock=clock, counts=counts, which=which), readings).read_all()["newest"][0].as_py()
        return answer

    # What came lately is in a few files. All of a busy stream that was never ticked is in all of them, so that is asked for last.
    if newest(f"ingested_at > {instant(then)}") is not None or (last := newest(f"event_time > {instant(done)}")) is None:
        return False
    event_time = max(_last_end(metric, from_micros(last)) for metric in metrics) + timedelta(seconds=lateness)
    if ticked is not None and event_time <= ticked:
        return False
    TICKS.append(folder, [Tick(stream, event_time, now)])
    return True


def _last_end(metric: Metric, newest: datetime) -> datetime:
    """An instant that all windows around the newest reading end by; of a calendar no later than needed, as a month is long."""
    if metric.calendar is None:
        return newest + timedelta(seconds=metric.longest_seconds)
    return from_micros(window_of(metric.calendar, to_micros(newest) // SECOND)[1] * SECOND)
