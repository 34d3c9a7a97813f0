"""Intervals of count and account: how much each entity had in each, also none; in SQL of DuckDB, as signals.py.

An interval is judged once the clock of the signal has passed its end. What comes for it later changes nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from gold.alerts.hours import NEVER
from gold.alerts.signals import (
    FATES,
    NOTHING_CARRIED,
    OF_ACCOUNT,
    Carried,
    judged,
    of_group,
    pass_clock,
    register_closings,
    rings_at,
    sample_of,
    sql_text,
)
from gold.alerts.spec import Alert, Signal
from gold.instants import SECOND

if TYPE_CHECKING:
    import duckdb

MOST_EMPTY = 1000
"""Empty intervals in a row that are judged, more if for_times wants more: bounds the memory where decades are between two readings."""
ARRIVED = """
select * from (select {entity} as entity, epoch_us({time}) as micros, step, {counts} from {rows} where {where}) where {of_entities}"""
COUNTED = """
select entity, coalesce(ends, {begin}) as ends, {sums} from (
  select entity, greatest({of_row}, {of_past}) as ends, {in_time} from arrived join closed using (step){carried}
) group by all"""
"""Carried is an entity without `ends` until the clock of the signal has begun."""
INTERVALS = """
with counted_by as (
  select entity, ends, lead(ends, 1, {until} + 1) over (partition by entity order by ends) as next_ends from counted where ends <= {until}
), intervals as (
  select entity, unnest(range(ends, least(next_ends, ends + {most}), {length})) as micros from counted_by
  union select entity, micros from (select entity, min(ends) as first from counted_by group by entity)
  join (select {last} as micros from closings) on micros >= first
)
select {sample} as "@", step, {counts}
from intervals left join counted on counted.entity = intervals.entity and ends = micros asof join closings on micros <= closings.until"""
"""A long run of empty intervals gives its first ones, and the last one of each step: all have one verdict, so the others change nothing."""
OPEN = """
select entity, ends, {sums} from (
  select * from counted where ends > {until} or ends is null
  union all by name select entity, {following} as ends, {nothing} from counted group by entity having min(ends) <= {until}
) group by all"""


def interval_samples(
    store: "duckdb.DuckDBPyConnection", alert: Alert, rows: str, walls: Sequence[int], carried: Carried = NOTHING_CARRIED
) -> tuple[pa.Table, Carried]:
    """See samples.samples."""
    store.execute("set TimeZone = 'UTC'")
    signal, names = alert.signal, _names(alert.signal)
    length, sums = signal.every_seconds * SECOND, ", ".join(f"sum({name})::bigint as {name}" for name in names)
    store.execute(f"create or replace temp table arrived as {_arrived(signal, rows)}")
    newest = dict(store.execute("select step, max(micros) from arrived group by all").fetchall())
    closings, clock = pass_clock(alert, carried, newest, walls)
    register_closings(store, closings)
    if carried.rows is not None:
        store.register("carried", carried.rows)
    begin = next((at for closing in closings for at in closing[1:] if at > -NEVER), None)
    of_row, of_past = (_following(micros, length) for micros in ("micros", "past"))
    counted = COUNTED.format(
        begin="null" if begin is None else _following(str(begin), length),
        sums=sums,
        of_row=of_row,
        of_past=of_past,
        in_time=", ".join(f"case when {of_row} > past then {name} else 0 end as {name}" for name in names),
        carried="" if carried.rows is None else " union all by name from carried",
    )
    store.execute(f"create or replace temp table counted as {counted}")
    counts = ", ".join(f"coalesce({name}, 0) as {name}" for name in names)
    if signal.kind == "account":
        counts += "".join(f", {fate} / nullif(readings + quarantined + late + duplicates, 0) as {fate}_share" for fate in FATES)
    sample, until = sample_of("intervals.entity", "make_timestamptz(micros)", ()), clock.closed
    # Hours may leave out any interval, so all of them are judged.
    most = NEVER if alert.hours else (max(MOST_EMPTY, alert.for_times) + 1) * length
    last = f"{_following('until', length)} - {length}"
    intervals = INTERVALS.format(sample=sample, counts=counts, until=until, length=length, last=last, most=most)
    of_slice = judged(store, alert, intervals, "step")
    nothing = ", ".join(f"0 as {name}" for name in names)
    left = OPEN.format(sums=sums, until=until, following=_following(str(until), length), nothing=nothing)
    kept = store.sql(left).to_arrow_table()
    (first,) = store.execute(f"select min(ends) from ({left})").fetchall()[0]
    return of_slice, replace(clock, rows=kept, rings_at=rings_at(alert, clock, first))


def with_entities(alert: Alert, carried: Carried, entities: Iterable[str]) -> Carried:
    """Return what is carried with entities that are to send from now on, also if they never sent anything."""
    names, before = _names(alert.signal), {*([] if carried.rows is None else carried.rows["entity"].to_pylist())}
    new = [entity for entity in entities if entity not in before]
    schema = pa.schema([("entity", pa.string()), ("ends", pa.int64()), *((name, pa.int64()) for name in names)])
    rows = pa.Table.from_pylist([{"entity": entity} | dict.fromkeys(names, 0) for entity in new], schema)
    return replace(carried, rows=rows if carried.rows is None else pa.concat_tables([carried.rows.cast(schema), rows]))


def without_entities(carried: Carried, entities: Sequence[str]) -> Carried:
    """Return what is carried without entities that are not to send any more."""
    if carried.rows is None or not entities:
        return carried
    is_left = [entity not in entities for entity in carried.rows["entity"].to_pylist()]
    return replace(carried, rows=carried.rows.filter(pa.array(is_left, pa.bool_())))


def _arrived(signal: Signal, rows: str) -> str:
    is_account, by_group = signal.kind == "account", signal.by == "group"
    of_metric = f"metric = {sql_text(signal.metric)}" if signal.metric else "true"
    return ARRIVED.format(
        rows=rows,
        entity="source" if is_account else "unnest(groups)" if by_group else "device_id",
        time="ingested_at" if is_account else "event_time",
        counts=", ".join(OF_ACCOUNT) if is_account else "1 as readings",
        where=of_metric + ("" if by_group else of_group(signal)),
        of_entities=f"entity = {sql_text(signal.group)}" if by_group and signal.group else "true",
    )


def _names(signal: Signal) -> tuple[str, ...]:
    return OF_ACCOUNT if signal.kind == "account" else ("readings",)


def _following(micros: str, length: int) -> str:
    """SQL: the end of the interval that an instant is in, also before 1970."""
    return f"({micros} - ({micros} % {length} + {length}) % {length} + {length})"
