"""Rows that an alert looks at, each with the step of the slice in which it comes."""

from bisect import bisect_left
from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from gold.alerts.signals import OF_ACCOUNT
from gold.alerts.spec import Alert
from gold.flows.slices import instants
from gold.instants import SECOND
from gold.windows.aggregates import by_metrics
from orchestration.engine.lake import Lake
from orchestration.jobs.gold.alert_steps import Step
from orchestration.jobs.gold.slices import READINGS, readings_taken, within
from orchestration.jobs.ranges import Range, pieces
from orchestration.storage.delta import instant, literal
from orchestration.storage.ops_tables import LEDGER
from orchestration.storage.positions import FlowPosition

LATE, CAME_LATE = "silver.late", "cause = 'late'"
"""Rows that a retry of the quarantine re-admits are of batches that were judged long ago; a replay judges them."""
OF_READING = "device_id, metric, event_time, value, unit, zone, groups, attributes, ingested_at, bronze_batch, bronze_row, part"
CONFIG: dict[str, str | bool | int | float | list[str]] = {"threads": 1, "enable_external_access": False}
OF_LATE_READINGS = """
with first as (from rows qualify row_number() over (partition by {entity}, window_end order by revision) = 1)
select first.*, min(came.bronze_batch) as came_in from first join came
  on {same_entity} and came.event_time >= first.window_start and came.event_time < first.window_end
where first.revision > 0 and first.window_end <= {closed} group by all having came_in > {after}
"""
"""Windows that no reading was in when they closed, with the first bronze batch of which one was."""


def arrived(lake: Lake, alert: Alert, start: FlowPosition, end: FlowPosition, steps: Sequence[Step]) -> pa.Table:
    """See samples.samples. `steps`: those from `start` to `end`."""
    signal = alert.signal
    if signal.is_of_gold:
        return _windows(lake, alert, start, end, steps)
    batches = Range(start.bronze_batch, end.bronze_batch).sql()
    if signal.kind == "account":
        query = f"select bronze_batch, source, {', '.join(OF_ACCOUNT)} from rows where {batches} and events > 0"
        rows = _with_steps(pa.concat_tables(pieces(lake, LEDGER, query)), steps)
        walls = instants(pc.take(pa.array([step.wall for step in steps], pa.int64()), rows["step"]).to_numpy())
        return rows.append_column("ingested_at", walls)
    taken = readings_taken([signal.metric] if signal.metric else [], signal.group)
    query = f"select {OF_READING} from rows where {batches} and {taken}"
    both = ((READINGS, query), (LATE, f"{query} and {CAME_LATE}"))
    return _with_steps(pa.concat_tables([piece for name, sql in both for piece in pieces(lake, name, sql)]), steps)


def _with_steps(rows: pa.Table, steps: Sequence[Step], batch: str = "bronze_batch") -> pa.Table:
    numbers = {step.batch: number for number, step in enumerate(steps) if not step.is_tick}
    at = pc.index_in(rows[batch], pa.array([*numbers], pa.int64()))
    return rows.append_column("step", pc.take(pa.array([*numbers.values()], pa.int64()), at))


def _windows(lake: Lake, alert: Alert, start: FlowPosition, end: FlowPosition, steps: Sequence[Step]) -> pa.Table:
    """Return the first revision of each window, or vector, that was closed since `start`, or that late readings made since."""
    signal = alert.signal
    kind = "aggregates" if signal.kind == "window" else "vectors"
    table = lake.generation.gold(lake.conf.groups[str(signal.group)].stream, kind)
    of_signal = f"device_group = {literal(signal.group)}" + (f" and metric = {literal(signal.metric)}" if signal.metric else "")
    # A window that ends where its stream has closed windows is closed.
    closed = within(start.closed_until_ms * 1000 + 1 if start.bronze_batch >= 0 else -(2**62), end.closed_until_ms * 1000 + 1, "window_end")
    in_time = pa.concat_tables(pieces(lake, table, f"select * from rows where {closed} and revision = 0 and {of_signal}"))
    closings = _closings(lake, alert, start, steps)
    ends = in_time["window_end"].cast(pa.int64()).to_pylist()
    in_steps = [min(bisect_left(closings, at), len(steps) - 1) for at in ends]
    in_time = in_time.append_column("step", pa.array(in_steps, pa.int64()))
    if signal.kind == "anomaly":
        in_time = _with_anomalies(lake, alert, in_time, f"{closed} and {of_signal}")
    late = _of_late_readings(lake, alert, table, of_signal, start, end)
    if late is None:
        return in_time
    # What only late rows made has no score in time: its columns of gold.anomalies are null.
    return pa.concat_tables([in_time, _with_steps(late, steps, "came_in").drop_columns("came_in")], promote_options="default")


def _with_anomalies(lake: Lake, alert: Alert, vectors: pa.Table, chosen: str) -> pa.Table:
    """Return vectors in time with how they were judged then; `chosen`: SQL of DataFusion."""
    table = lake.generation.gold(lake.conf.groups[str(alert.signal.group)].stream, "anomalies")
    judged = pieces(lake, table, f"select entity, window_end, score, is_anomaly, reason from rows where {chosen} and revision = 0")
    with duckdb.connect(config=CONFIG) as store:
        store.execute("set TimeZone = 'UTC'")
        store.register("vectors", vectors)
        store.register("judged", pa.concat_tables(judged))
        joined = store.sql("from vectors left join judged using (entity, window_end)").to_arrow_table()
    return joined.select([*vectors.column_names, "score", "is_anomaly", "reason"])


def _closings(lake: Lake, alert: Alert, start: FlowPosition, steps: Sequence[Step]) -> list[int]:
    """Return up to where readings of the stream have passed ends of windows by its lateness, in each step; a tick closes the rest."""
    stream = lake.conf.groups[str(alert.signal.group)].stream
    groups = lake.conf.streams[stream]
    lateness = max(group.lateness_seconds for group in groups) * SECOND
    counts = " or ".join(f"({_any_group(names)} and metric in {literal(metrics)})" for metrics, names in by_metrics(groups).items())
    batches = Range(start.bronze_batch, max((step.batch for step in steps), default=start.bronze_batch)).sql()
    ahead = lake.conf.ahead_of(stream)
    clock = "event_time" if ahead is None else f"least(event_time, ingested_at + interval '{ahead} seconds')"
    query = f"select bronze_batch, max({clock}) as newest from rows where {batches} and ({counts}) group by bronze_batch"
    newest = dict[int, int]()
    for piece in pieces(lake, READINGS, query):
        newest |= dict(zip(piece["bronze_batch"].to_pylist(), piece["newest"].cast(pa.int64()).to_pylist(), strict=True))
    closings, closed = list[int](), -(2**62)
    for step in steps:
        at = step.event_time if step.is_tick else newest.get(step.batch)
        closed = closed if at is None else max(closed, at // 1000 * 1000 - lateness)
        closings.append(closed)
    return closings


def _any_group(names: Sequence[str]) -> str:
    return "(" + " or ".join(f"array_has(groups, {literal(name)})" for name in names) + ")"


def _of_late_readings(  # noqa: PLR0917
    lake: Lake, alert: Alert, table: str, of_signal: str, start: FlowPosition, end: FlowPosition
) -> pa.Table | None:
    """Return the first revision of windows that readings of these batches made, which came when the windows were closed; None for none."""
    signal, group = alert.signal, lake.conf.groups[str(alert.signal.group)]
    metrics = [str(signal.metric)] if signal.metric else sorted({feature.rpartition(".")[2] for feature in signal.features})
    batches, of_group = Range(start.bronze_batch, end.bronze_batch).sql(), readings_taken(metrics, group.name)
    ends = "min(event_time) as first, max(event_time) as last"
    late = f"select {ends} from rows where {batches} and {of_group} and {CAME_LATE}"
    late_for_group = f"select {ends} from rows where {batches} and device_group = {literal(group.name)} and metric in {literal(metrics)}"
    spans = [*pieces(lake, LATE, late), *pieces(lake, lake.generation.gold(group.stream, "late"), late_for_group)]
    times = [at for span in spans for name in ("first", "last") for at in span[name].cast(pa.int64()).to_pylist() if at is not None]
    if not times:
        return None
    first, last = instant(min(times)), instant(max(times))
    rows = pa.concat_tables(
        pieces(lake, table, f"select * from rows where window_end > {first} and window_start <= {last} and {of_signal}")
    )
    if not len(rows):
        return None
    begin, until = (f(rows[name].cast(pa.int64())).as_py() for f, name in ((pc.min, "window_start"), (pc.max, "window_end")))
    query = f"select device_id, event_time, bronze_batch from rows where {within(begin, until)} and {of_group} and {{}}"
    up_to = f"bronze_batch <= {end.bronze_batch}"
    came = [*pieces(lake, READINGS, query.format(up_to)), *pieces(lake, LATE, query.format(f"{up_to} and {CAME_LATE}"))]
    entity = "device_id" if signal.kind == "window" else "entity"
    is_of_group = signal.features and group.vector is not None and group.vector.entity == "group"
    sql = OF_LATE_READINGS.format(
        entity=entity,
        same_entity="true" if is_of_group else f"came.device_id = first.{entity}",
        closed=f"make_timestamptz({end.closed_until_ms * 1000})",
        after=start.bronze_batch,
    )
    with duckdb.connect(config=CONFIG) as store:
        store.execute("set TimeZone = 'UTC'")
        store.register("rows", rows)
        store.register("came", pa.concat_tables(came))
        return store.sql(sql).to_arrow_table().cast(rows.schema.append(pa.field("came_in", pa.int64())))
