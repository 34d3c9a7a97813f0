"""Alerts of a test, judged batch by batch, and at each instant at which time alone changes one, up to the end of the test."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from gold.alerts.edits import expected
from gold.alerts.intervals import with_entities
from gold.alerts.samples import samples
from gold.alerts.signals import NOTHING_CARRIED, Carried
from gold.alerts.spec import Alert
from gold.alerts.states import State, judge
from gold.schema import ALERTS, SAMPLES
from orchestration.audit.conf_tests.gold import Gold
from orchestration.conf.model import Conf
from orchestration.jobs.silver_in_process import Silver
from orchestration.utc import to_micros
from silver.schema import READING_COLUMNS

MOST_TICKS = 10_000
"""Bounds the instants between two batches at which time alone changes an alert."""
ACCOUNT = """
  with fates as (
    select bronze_batch, source, 'readings' as fate, false as is_conflict from readings
    union all select bronze_batch, source, 'late', false from late
    union all select bronze_batch, source, 'duplicates', is_conflict from duplicates
    union all select bronze_batch, source, 'quarantined', false from quarantine
  ),
  counts as (
    select bronze_batch, source, count(*) filter (fate = 'readings') as readings, count(*) filter (fate = 'quarantined') as quarantined,
      count(*) filter (fate = 'late') as late, count(*) filter (fate = 'duplicates') as duplicates,
      count(*) filter (is_conflict) as conflicts
    from fates group by all
  )
  select bronze_batch as step, source, ingested_at, count(*) as events, any_value(columns(c.* exclude (bronze_batch, source)))
  from events e left join counts c using (bronze_batch, source) group by all
"""


def alert_rows(conf: Conf, events: pa.Table, silver: Silver, gold: Gold, until: datetime | None) -> Iterator[pa.Table]:
    """Yield the changes of each alert. `until`: when the test ends; None: with the last batch."""
    walls = sorted(pc.unique(events["ingested_at"]).cast(pa.int64()).to_pylist())
    end = max(walls[-1], to_micros(until)) if until else walls[-1]
    for alert in conf.alerts.values():
        closes = alert.signal.is_of_gold
        rows = gold.first_emitted(alert.signal, len(walls)) if closes else _rows_of_silver(alert, events, silver)
        yield from _judged(conf, alert, rows, [*walls, *([end] if closes or end > walls[-1] else [])])


def _rows_of_silver(alert: Alert, events: pa.Table, silver: Silver) -> pa.Table:
    """See samples.samples."""
    if alert.signal.kind == "account":
        with closing(duckdb.connect(config={"threads": 1})) as store:
            store.execute("set TimeZone = 'UTC'")
            store.register("events", events)
            for name in ("readings", "late", "duplicates", "quarantine"):
                store.register(name, getattr(silver, name))
            return store.sql(ACCOUNT).to_arrow_table()
    both = pa.concat_tables([silver.readings.select(READING_COLUMNS), silver.late.select(READING_COLUMNS)])
    taken = both if alert.signal.metric is None else both.filter(pc.equal(both["metric"], alert.signal.metric))
    return taken.append_column("step", taken["bronze_batch"])


class _Judged(NamedTuple):
    """Changes of a step, and what it leaves."""

    changes: pa.Table
    states: dict[str, State]
    signal: Carried
    rings_at: int | None


def _judged(conf: Conf, alert: Alert, rows: pa.Table, walls: Sequence[int]) -> Iterator[pa.Table]:
    states, signal = _expected_from_the_start(conf, alert, walls[0]), NOTHING_CARRIED
    if not states and not len(rows):
        return
    if alert.signal.kind == "count" and states:
        signal = with_entities(alert, signal, states)
    judged = _Judged(ALERTS.empty_table(), states, signal, None)
    with closing(duckdb.connect(config={"threads": 1})) as store:
        for number, wall in enumerate(walls):
            of_step, ticks = rows.filter(pc.equal(rows["step"], number)), 0
            while judged.rings_at is not None and judged.rings_at < wall and ticks < MOST_TICKS:
                judged, ticks = _step(store, alert, rows.slice(0, 0), judged.rings_at, judged), ticks + 1
                yield judged.changes
            judged = _step(store, alert, of_step, wall, judged)
            yield judged.changes


def _step(store: duckdb.DuckDBPyConnection, alert: Alert, rows: pa.Table, wall: int, before: _Judged) -> _Judged:
    number = rows.column_names.index("step")
    store.register("came", rows.set_column(number, "step", pa.repeat(pa.scalar(0, pa.int64()), len(rows))))
    values, signal = samples(store, alert, "came", [wall], before.signal)
    changes, states, rings_at = judge(alert, before.states, values.cast(SAMPLES), [wall])
    rings = [at for at in (rings_at, signal.rings_at) if at is not None]
    return _Judged(changes, states, signal, min(rings, default=None))


def _expected_from_the_start(conf: Conf, alert: Alert, wall: int) -> dict[str, State]:
    """Return the states of devices that are to send."""
    signal = alert.signal
    if not (alert.expected and signal.is_of_devices):
        return {}
    devices = [name for name, device in conf.devices.items() if signal.group is None or signal.group in device.groups]
    return expected({}, devices, wall)
