"""Gold of a test: windows and vectors by the evaluator of `verify`, flows and alerts by the functions that streams use."""

from collections.abc import Iterator
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from bronze.schema import INSTANT
from gold.alerts.spec import Signal
from gold.flows.slices import THE_BEGINNING, Slice
from gold.flows.steps import nothing_carried, readings_of, step
from gold.windows.spec import Group, Late
from orchestration.audit.verify.gold_windows import vectors, windows
from orchestration.audit.verify.store import plain
from orchestration.conf.model import Conf
from orchestration.jobs.flow_readings import with_predicates
from orchestration.jobs.silver_in_process import Silver
from orchestration.storage.delta import literal
from silver.judging import PLAIN_INSTANT, retyped

THE_END = datetime(9999, 12, 31, tzinfo=UTC)
SECOND = 1_000_000
COUNTED = """
  create temp table counted as
  select device_id, metric, event_time, value, groups, ingested_at, bronze_batch, bronze_row, part, false as is_late from readings
  union all
  select device_id, metric, event_time, value, groups, ingested_at, bronze_batch, bronze_row, part, true from late
"""
CLOCK = """
  create or replace temp table clock as
  with newest as (
    select bronze_batch, max(least(epoch_us(event_time), {ahead})) as newest_at from counted where not is_late and ({members})
    group by bronze_batch
  )
  select bronze_batch, max(newest_at) over (order by bronze_batch) - {lateness} as until from newest
"""
"""Up to where the windows of a stream are closed behind each batch."""
SET_ASIDE = """
  create or replace temp table set_aside as
  select p.bronze_batch, bronze_row, part, window_end from placed p
  asof join clock c on p.bronze_batch > c.bronze_batch where epoch_us(window_end) <= c.until
"""
FIRST_STEP = """
  select *, {name} as device_group from (
    select w.*{scored}, coalesce((select min(bronze_batch) from clock where epoch_us(window_end) <= until), {last}) as step from {table} w
    union all by name
    select a.*, (select min(first_batch) from all_windows l where l.window_end = a.window_end and {same}) as step
    from all_{table} a anti join {table} using ({key})
  ) where step is not null
"""
"""Rows in their first revision, with the step in which each is closed; or in which a late reading made it, where none was in time.

A test has no model of anomalies: `scored` says that of those in time."""


class Gold:
    """The store of one test: `counted`, the accepted measurements that gold counts."""

    def __init__(self, conf: Conf, silver: Silver) -> None:
        self._conf, self._silver = conf, silver
        self._store = duckdb.connect(config={"threads": 1})
        for name in ("readings", "late"):
            self._store.register(name, plain(getattr(silver, name)))
        self._store.execute(COUNTED)

    def close(self) -> None:
        self._store.close()

    def windows(self) -> Iterator[pa.Table]:
        """Yield windows of each group, all of them closed, in their last revision."""
        for group in self._conf.groups.values():
            self._make(group)
            yield self._rows("windows", group)

    def vectors(self) -> Iterator[pa.Table]:
        """Yield vectors of each group that declares them."""
        for group in self._conf.groups.values():
            if group.vector is not None:
                self._make(group)
                yield self._rows("vectors", group)

    def first_emitted(self, signal: Signal, last_step: int) -> pa.Table:
        """Windows or vectors in their first revision, each with the `step` in which it was closed: that of a batch, else the last one."""
        group, table = self._conf.groups[str(signal.group)], "windows" if signal.kind == "window" else "vectors"
        self._make(group)
        for name in {"windows", table}:
            self._store.execute(f"create or replace temp table all_{name} as from {name}")
        self._make(group, only_first=True)
        key, same = "device_id, metric, window_end", "l.device_id = a.device_id and l.metric = a.metric"
        if group.vector is not None and signal.features:
            key, same = "entity, window_end", "l.device_id = a.entity" if group.vector.entity == "device" else "true"
        scored = ", null::double as score, false as is_anomaly, 'learning' as reason" if signal.kind == "anomaly" else ""
        sql = FIRST_STEP.format(name=literal(group.name), last=last_step, table=table, same=same, key=key, scored=scored)
        return _with_zone(self._store.sql(sql).to_arrow_table())

    def flows(self, until: int) -> Iterator[pa.Table]:
        """Yield rows of each flow up to an instant, in microseconds since 1970."""
        for flow in self._conf.flows.values():
            taken = self._silver.readings
            if flow.metrics:
                taken = taken.filter(pc.is_in(taken["metric"], pa.array([*flow.metrics])))
            if flow.group:
                taken = taken.filter(pa.array([flow.group in (names or ()) for names in taken["groups"].to_pylist()], pa.bool_()))
            taken = taken.filter(pc.less(taken["event_time"].cast(pa.int64()), until))
            readings = with_predicates(flow, taken).cast(readings_of(flow))
            yield step(flow, Slice(nothing_carried(flow), readings, THE_BEGINNING, until)).rows

    def _make(self, group: Group, *, only_first: bool = False) -> None:
        """Make the tables `windows` and, where they are declared, `vectors`. `only_first`: without what came when they were closed."""
        members, ahead = self._conf.streams[group.stream], self._conf.ahead_of(group.stream)
        of_members = " or ".join(f"(list_contains(groups, {literal(one.name)}) and metric in {literal(one.metrics)})" for one in members)
        lateness = max(one.lateness_seconds for one in members) * SECOND
        ahead_sql = str(2**62) if ahead is None else f"epoch_us(ingested_at) + {ahead * SECOND}"
        self._store.execute(CLOCK.format(ahead=ahead_sql, members=of_members, lateness=lateness))
        windows(self._store, group, self._conf.metrics, THE_END)
        if only_first or group.late is Late.KEEP_ASIDE:
            self._store.execute(SET_ASIDE)
            windows(self._store, group, self._conf.metrics, THE_END, set_aside="set_aside")
        if group.vector is not None:
            vectors(self._store, group, group.vector, self._conf.metrics)

    def _rows(self, table: str, group: Group) -> pa.Table:
        return _with_zone(self._store.sql(f'select *, {literal(group.name)} as "group" from {table}').to_arrow_table())


def _with_zone(rows: pa.Table) -> pa.Table:
    return retyped(rows, PLAIN_INSTANT, INSTANT)
