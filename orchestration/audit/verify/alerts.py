"""Alerts of alerts.yml once more: samples of all that came in time, by SQL of DuckDB, and the states of each entity in Python.

Windows and vectors are those of revision 0, computed from what came in time for them. Of numbers that are sums the recorded ones are judged
where they are equal to what is computed: else a condition such as `value > 21.2` would depend on the order in which readings were added up.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import duckdb
import pyarrow as pa

from gold.alerts.spec import Alert
from gold.windows.spec import Group, Late
from orchestration.audit.verify.alert_states import Change, Sample, changes
from orchestration.audit.verify.compare import NEAR, Comparison, Outcome, compared, timed
from orchestration.audit.verify.conditions import evaluated
from orchestration.audit.verify.gold_windows import EVER, vectors, windows
from orchestration.audit.verify.lake_snapshot import LakeSnapshot
from orchestration.audit.verify.store import (
    AGGREGATES,
    IDENTITY,
    LATE_FOR_GROUP,
    NUMBERS,
    PART_OF_EVENT,
    VECTORS,
    WINDOW,
    column_names,
    fill,
    listed,
    quoted,
    record,
)
from orchestration.conf.model import Conf
from orchestration.storage.delta import literal
from orchestration.utc import EPOCH, MICROSECOND, to_micros

LINEAGE = (*IDENTITY, "window_start", "window_end")
WITHOUT_CAUSE = (None,) * len(LINEAGE)
COLUMNS = f"""
  entity VARCHAR, state VARCHAR, previous_state VARCHAR, changed_at TIMESTAMP, since TIMESTAMP, known_at TIMESTAMP, severity VARCHAR,
  value DOUBLE, summary VARCHAR, alert_id VARCHAR, {PART_OF_EVENT}, {WINDOW}
"""
KEY = ("entity", "changed_at", "state", "previous_state")
CELLS = [name for name in column_names(COLUMNS) if name not in KEY]
FETCHED = 50_000
"""Samples that are Python's at once, and those of one entity: bounds the memory."""
IN_TIME = f"accepted semi join (from counted where not is_late) using ({listed(IDENTITY)})"
ROW = (
    'struct_pack(entity := {entity}, "at" := {at}, ingested_at := {ingested_at}, bronze_batch := {event}, bronze_row := {row},'
    ' part := {part}, window_start := {start}::timestamp, window_end := {end}::timestamp) as "@"'
)
"""All of a sample beside its fields, in one column."""
NO_LINEAGE = dict.fromkeys(("ingested_at", "event", "row", "part", "start", "end"), "null")
OF_EVENT = NO_LINEAGE | {"ingested_at": "ingested_at", "event": "bronze_batch", "row": "bronze_row", "part": "part"}
OF_WINDOW = NO_LINEAGE | {"at": "window_end", "start": "window_start", "end": "window_end"}
OF_READINGS = f"""
  select {ROW.format(entity="device_id", at="event_time", **OF_EVENT)}, value, lag(value) over same as previous, value - previous as change,
    (epoch_us(event_time) - lag(epoch_us(event_time)) over same) / 1e6 as seconds, change / nullif(seconds, 0) as rate,
    unit, zone, attributes
  from {IN_TIME} where {{where}} window same as (partition by device_id order by event_time)
"""
OF_COUNTS = f"""
  with arrived as (
    select {{entity}} as entity, epoch_us(event_time) // {{step}} * {{step}} + {{step}} as ends_at from {IN_TIME} where {{where}}
  ),
  counts as (select entity, ends_at, count(*) as readings from arrived where {{of_group}} group by all),
  intervals as (select entity, unnest(range(min(ends_at), $until_us, {{step}})) as ends_at from counts group by entity)
  select {ROW.format(entity="entity", at="make_timestamp(ends_at)", **NO_LINEAGE)}, coalesce(readings, 0) as readings
  from intervals left join counts using (entity, ends_at)
"""
OF_ACCOUNT = f"""
  with began as (
    select bronze_batch, epoch_us(max(ingested_at)) as micros, row_number() over (order by bronze_batch) as place
    from batches group by bronze_batch
  ),
  times as (select bronze_batch, max(micros - place) over (order by bronze_batch) + place as micros from began),
  arrived as (
    select source as entity, micros // {{step}} * {{step}} + {{step}} as ends_at, {{sums}} from ledger join times using (bronze_batch)
    where events > 0 and micros >= epoch_us($since::timestamp) and micros < $until_us group by all
  ),
  intervals as (select entity, unnest(range(min(ends_at), $until_us, {{step}})) as ends_at from arrived group by entity)
  select {ROW.format(entity="entity", at="make_timestamp(ends_at)", **NO_LINEAGE)}, {{counts}},
    {{shares}}
  from intervals left join arrived using (entity, ends_at)
"""
FATES = ("quarantined", "late", "duplicates", "conflicts")
COUNTS = ("events", "readings", *FATES)


def alert_outcomes(
    store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, conf: Conf, progress: Callable[[str], None]
) -> Iterator[Outcome]:
    """Changes of each alert against what the prefix gives. Of an account the ledger is taken as it is: `tidemark ledger` proves it."""
    if any(alert.signal.kind == "account" for alert in conf.alerts.values()):
        of_prefix = f"bronze_batch <= {snapshot.bronze_batch}"
        record(store, snapshot, "bronze.events", "batches", "bronze_batch BIGINT, ingested_at TIMESTAMP", where=of_prefix)
        counts = ", ".join(f"{name} BIGINT" for name in COUNTS)
        record(store, snapshot, "ops.ledger", "ledger", f"bronze_batch BIGINT, source VARCHAR, {counts}", where=of_prefix)
    group: str | None = None
    for alert in sorted(conf.alerts.values(), key=lambda alert: (alert.signal.kind in {"window", "vector"}, alert.signal.group or "")):
        progress(f"gold.alerts/{alert.name}")
        if alert.signal.kind in {"window", "vector"} and alert.signal.group != group:
            group = alert.signal.group
            _first_emitted(store, snapshot, conf, conf.groups[str(group)])
        yield timed(lambda alert=alert: _outcome(store, snapshot, alert))  # type: ignore[misc]


def _outcome(store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, alert: Alert) -> Outcome:
    """Compare changes since the alert has its declaration: what it was before is not known any more, nor what ended with that."""
    name = f"gold.flows/alerts/{alert.name}"
    record(store, snapshot, "gold.alerts", "recorded_alert", COLUMNS, where=f"alert = {literal(alert.name)}")
    until, began = snapshot.closed_until.get(name, EVER), max(snapshot.began.get(name, EPOCH), EPOCH)
    # A window that ends where its stream has closed windows is closed, and an account knows its newest batch; a snapshot has milliseconds.
    if alert.signal.kind in {"window", "vector", "account"} and until > EPOCH:
        until = until.replace(microsecond=until.microsecond // 1000 * 1000) + MICROSECOND
    by_entity = _samples(store, alert, began, until)
    expected = (_row(entity, change) for entity, samples in by_entity for change in changes(alert, entity, samples, to_micros(until)))
    fill(store, "expected_alert", COLUMNS, expected)
    at = f"timestamp '{began:%Y-%m-%d %H:%M:%S.%f}'"
    since = f"(from recorded_alert where changed_at > {at} or (changed_at = {at} and bronze_row is not null))"
    return compared(store, since, "expected_alert", Comparison(f"gold.alerts/{alert.name}", KEY, CELLS, {}))


def _row(entity: str, change: Change) -> list[Any]:
    known_at = (change.cause and change.cause.ingested_at) or change.changed_at
    row = change._asdict() | {"entity": entity, "known_at": known_at}
    row |= dict(zip(LINEAGE, change.cause.lineage if change.cause else WITHOUT_CAUSE, strict=True))
    return [row[name] for name in column_names(COLUMNS)]


def _samples(store: duckdb.DuckDBPyConnection, alert: Alert, since: datetime, until: datetime) -> Iterator[tuple[str, list[Sample]]]:
    """Yield samples by entity, in order of time. Conditions of users see the fields alone, in a database of their own."""
    sql, values = _fields(alert, since, until)
    rows = store.sql(sql, params=values).to_arrow_reader(FETCHED)
    when = evaluated(alert.when, rows.schema)
    over = evaluated(alert.recover_when, rows.schema) if alert.recover_when else f"not {when}"
    verdict = f"case when {when} then true when {over} then false end"
    of_sample = ", ".join(f'"@".{name}' for name in ("entity", "ingested_at", *LINEAGE))
    judged = f'select epoch_us("@"."at") as micros, {verdict} as verdict, {_shown(alert, rows.schema)}::double as shown, {of_sample}'
    with duckdb.connect(config={"threads": 1, "enable_external_access": False}) as own:
        own.register("fields", rows)
        verdicts = own.execute(f'{judged} from fields order by "@".entity, "@"."at"')
        rows_in_order = chain.from_iterable(iter(partial(verdicts.fetchmany, FETCHED), []))
        for entity, of_entity in groupby(rows_in_order, key=itemgetter(3)):
            yield entity, [Sample(at, is_true, value, ingested, tuple(lineage)) for at, is_true, value, _, ingested, *lineage in of_entity]


def _shown(alert: Alert, schema: pa.Schema) -> str:
    """The value of a sample: of vectors and accounts the first number that `when` names."""
    numbers: list[str] = [field.name for field in schema if pa.types.is_floating(field.type) or pa.types.is_integer(field.type)]
    if alert.signal.kind in {"vector", "account"}:
        words = re.findall(r'"(?:[^"]|"")+"|\w+', re.sub("'(?:[^']|'')*'", "", alert.when))
        named = [word.strip('"').replace('""', '"').lower() for word in words]
        numbers.sort(key=lambda name: named.index(name.lower()) if name.lower() in named else len(named))
    return quoted(numbers[0])


def _fields(alert: Alert, since: datetime, until: datetime) -> tuple[str, dict[str, Any]]:
    """SQL for samples with all that a condition may name, and the values of its parameters."""
    signal = alert.signal
    values: dict[str, Any] = {"since": since.astimezone(UTC).replace(tzinfo=None), "until": until.astimezone(UTC).replace(tzinfo=None)}
    of_metric = " and metric = $metric" if signal.metric else ""
    values |= {"metric": signal.metric} if signal.metric else {}
    if signal.kind in {"window", "vector"}:
        time = f"window_end >= $since and window_end < $until{of_metric}"
        return _of_windows(alert) + f" where {time}", values
    if signal.kind == "account":
        return _of_account(signal.every_seconds * 1_000_000), {"since": values["since"], "until_us": to_micros(until)}
    where = f"event_time >= $since and event_time < $until{of_metric}"
    by_group = signal.kind == "count" and signal.by == "group"
    of_group = f" and list_contains(groups, {literal(signal.group)})" if signal.group and not by_group else ""
    if signal.kind == "reading":
        return OF_READINGS.format(where=where + of_group), values
    sql = OF_COUNTS.format(
        entity="unnest(groups)" if by_group else "device_id",
        step=signal.every_seconds * 1_000_000,
        where=where + of_group,
        of_group=f"entity = {literal(signal.group)}" if signal.group and by_group else "true",
    )
    return sql, values | {"until_us": to_micros(until)}


def _of_account(step: int) -> str:
    accounted = "readings + quarantined + late + duplicates"
    return OF_ACCOUNT.format(
        step=step,
        sums=", ".join(f"sum({name})::bigint as {name}" for name in COUNTS),
        counts=", ".join(f"coalesce({name}, 0) as {name}" for name in COUNTS),
        shares=", ".join(f"{fate} / nullif({accounted}, 0) as {fate}_share" for fate in FATES),
    )


def _of_windows(alert: Alert) -> str:
    if alert.signal.kind == "window":
        of_previous = "lag(value) over (partition by device_id order by window_end) as previous, value - previous as change"
        return f"select {ROW.format(entity='device_id', **OF_WINDOW)}, {listed(NUMBERS)}, count, {of_previous} from windows"
    features = "".join(f"vector[{index}] as {quoted(name)}, " for index, name in enumerate(alert.signal.features, 1))
    share = f"len(missing) / {len(alert.signal.features)} as missing_share"
    return f"select {ROW.format(entity='entity', **OF_WINDOW)}, {features}missing, filled, {share} from vectors"


def _first_emitted(store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, conf: Conf, group: Group) -> None:
    """Makes `windows` and `vectors` of a group as they were before any amendment.

    A stream fills a vector from the newest revision of a window; whether it was amended by then depends on what came when. So vectors that
    are filled are taken as recorded, where the group has amendments.
    """
    of_group = f"device_group = {literal(group.name)}"
    for kind, columns in (("late", LATE_FOR_GROUP), ("aggregates", AGGREGATES), ("vectors", VECTORS)):
        where = of_group if kind == "late" else f"{of_group} and revision = 0"
        record(store, snapshot, snapshot.generation.gold(group.stream, kind), f"first_{kind}", columns, where=where)
    windows(store, group, conf.metrics, snapshot.closed_until.get(group.stream, EVER), set_aside="first_late")
    store.execute(NEAR)
    size = {"value": "value_size"}
    same = ", ".join(f"case when near(w.{n}, f.{n}, w.{size.get(n, 'size')}) then f.{n} else w.{n} end as {n}" for n in NUMBERS)
    on = "f.device_id = w.device_id and f.metric = w.metric and f.window_end = w.window_end"
    first = f"select w.* replace ({same}) from windows w left join first_aggregates f on {on}"
    store.execute(f"create or replace temp table windows as {first}")
    if group.vector is not None:
        vectors(store, group, group.vector, conf.metrics)
        taken = "coalesce(len(f.filled) > 0, false)" if group.late is Late.AMEND else "false"
        columns = ", ".join(f"case when {taken} then f.{name} else v.{name} end as {name}" for name in ("vector", "missing", "filled"))
        on = "f.entity = v.entity and f.window_end = v.window_end"
        filled = f"select v.* replace ({columns}) from vectors v left join first_vectors f on {on}"
        store.execute(f"create or replace temp table vectors as {filled}")
