"""Alerts of alerts.yml once more: samples of all that was accepted, by SQL of DuckDB, and the states of each entity in Python.

Windows and vectors are those of revision 0, computed from what came in time for them; windows that late readings alone made are taken as
recorded. Of numbers that are sums the recorded ones are judged where they are equal to what is computed: else a condition such as
`value > 21.2` would depend on the order in which readings were added up.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import duckdb
import pyarrow as pa

from gold.alerts.spec import Alert
from orchestration.audit.verify.alert_states import Change, Sample, changes
from orchestration.audit.verify.alert_steps import FOR_EVER, SECOND, Presence, Step, Steps, make_clock, make_lives, make_steps
from orchestration.audit.verify.compare import Comparison, Outcome, compared, timed
from orchestration.audit.verify.conditions import evaluated
from orchestration.audit.verify.first_windows import make_closings, make_first_emitted
from orchestration.audit.verify.gold_windows import EVER, WHOLE_MULTIPLE
from orchestration.audit.verify.lake_snapshot import LakeSnapshot
from orchestration.audit.verify.store import (
    IDENTITY,
    NUMBERS,
    PART_OF_EVENT,
    WINDOW,
    column_names,
    fill,
    listed,
    quoted,
    record,
)
from orchestration.conf.model import Conf
from orchestration.storage.delta import literal
from orchestration.utc import from_micros, to_micros

LINEAGE = (*IDENTITY, "window_start", "window_end")
WITHOUT_CAUSE = (None,) * len(LINEAGE)
COLUMNS = f"""
  entity VARCHAR, state VARCHAR, previous_state VARCHAR, changed_at TIMESTAMP, since TIMESTAMP, known_at TIMESTAMP, severity VARCHAR,
  value DOUBLE, summary VARCHAR, alert_id VARCHAR, is_past BOOLEAN, reason VARCHAR, {PART_OF_EVENT}, {WINDOW}
"""
KEY = ("entity", "known_at", "changed_at", "state", "previous_state", "is_past")
CELLS = [name for name in column_names(COLUMNS) if name not in KEY]
FETCHED = 50_000
"""Samples that are Python's at once, and those of one entity: bounds the memory."""
ACCEPTED = f"(accepted semi join (from counted anti join retried using ({listed(IDENTITY)})) using ({listed(IDENTITY)}))"
"""Rows that a retry of the quarantine re-admits are of batches that were judged before."""
ROW = (
    'struct_pack(entity := {entity}, "at" := {at}, step := {step}, begins := {begins}, bronze_batch := {event}, bronze_row := {row},'
    ' part := {part}, window_start := {start}::timestamp, window_end := {end}::timestamp, reason := {reason}) as "@"'
)
"""All of a sample beside its fields, in one column."""
NO_LINEAGE = dict.fromkeys(("begins", "event", "row", "part", "start", "end"), "null::bigint") | {"reason": "null::varchar"}
OF_EVENT = NO_LINEAGE | {"event": "bronze_batch", "row": "bronze_row", "part": "part"}
OF_WINDOW = NO_LINEAGE | {"begins": "epoch_us(window_start)", "start": "window_start", "end": "window_end"}
OF_ANOMALY = OF_WINDOW | {"reason": '"@reason"'}
ANOMALIES = "entity VARCHAR, window_end TIMESTAMP, score DOUBLE, is_anomaly BOOLEAN, reason VARCHAR"
TAKEN = """
  create or replace temp table taken as
  with of_clock as (select until, min(step) as step from clock group by until),
  placed as (select c.* exclude (came_in), {step} as step from came c asof left join of_clock k on c.micros <= k.until),
  heard as (select entity, step, max(micros) as newest from placed where step is not null group by all),
  known as (
    select entity, step, max(newest) over (partition by entity order by step rows between unbounded preceding and 1 preceding) as newest
    from heard
  )
  select p.*, case when k.newest is null or p.micros > k.newest then -1 else p.step end as run
  from placed p join known k on k.entity = p.entity and k.step = p.step
"""
"""Rows with the step that takes them. `run`: rows that follow each other in event time; those that are too old are a run of their step."""
PREVIOUS = "lag(value) over same as previous, value - previous as change"
RATE = "(micros - lag(micros) over same) / 1e6 as seconds, change / nullif(seconds, 0) as rate"
SAME = "window same as (partition by entity, run order by micros)"
OF_COUNTS = f"""
  with lives as (select * from life union all select distinct entity, 0, {FOR_EVER} from came anti join life using (entity)
    union all select distinct entity, 0, {FOR_EVER} from awaited anti join life using (entity) anti join came using (entity)),
  lived as (
    select c.*, l.begins_in, l.ends_in, whole_multiple(micros, {{length}}) + {{length}} as ends_at, k.past
    from came c join clock k on k.step = c.came_in
    join lives l on l.entity = c.entity and c.came_in >= l.begins_in and c.came_in < l.ends_in
  ),
  begun as (
    select entity, begins_in, min(first) as first from (
      select entity, begins_in, greatest(ends_at, whole_multiple(past, {{length}}) + {{length}}) as first from lived
      union all select entity, begins_in, whole_multiple(since, {{length}}) + {{length}} from awaited
    ) group by all
  ),
  counts as (select entity, begins_in, ends_at, {{sums}} from lived where ends_at > past group by all),
  starts as (
    select *, lead(ends_at) over (partition by entity, begins_in order by ends_at) as goes_on
    from (select entity, begins_in, ends_at from counts union select entity, begins_in, first from begun)
  ),
  ends as (
    select entity, begins_in, unnest(range(ends_at, least(goes_on, {{until}} + 1, ends_at + {{most}}), {{length}})) as ends_at from starts
    union select entity, begins_in, last from begun join (select whole_multiple(until, {{length}}) as last from clock) on last >= first
  ),
  due as (
    select e.*, k.step from ends e asof join (select until, min(step) as step from clock group by until) k on e.ends_at <= k.until
  )
  select {ROW.format(entity="entity", at="ends_at", step="step", **NO_LINEAGE)}, {{counts}}
  from due join lives using (entity, begins_in) left join counts using (entity, begins_in, ends_at) where step < ends_in
"""
"""Intervals in a row in which nothing is counted have one verdict: the first ones stand for them, and the last one of each step."""
EMPTY_IN_A_ROW = 100
FATES = ("quarantined", "late", "duplicates", "conflicts")
COUNTS = ("events", "readings", *FATES)


def alert_outcomes(
    store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, conf: Conf, progress: Callable[[str], None]
) -> Iterator[Outcome]:
    """Changes of each alert against what the prefix gives. Of an account the ledger is taken as it is: `tidemark ledger` proves it."""
    counts = ", ".join(f"{name} BIGINT" for name in COUNTS)
    of_prefix = f"bronze_batch <= {snapshot.bronze_batch}"
    record(store, snapshot, "ops.ledger", "ledger", f"bronze_batch BIGINT, source VARCHAR, {counts}", where=of_prefix)
    record(store, snapshot, "silver.late", "retried", PART_OF_EVENT, where="cause = 'retried'")
    store.execute(WHOLE_MULTIPLE)
    steps = Steps(store, snapshot, conf)
    group: str | None = None
    for alert in sorted(conf.alerts.values(), key=lambda alert: (alert.signal.is_of_gold, alert.signal.group or "")):
        progress(f"gold.alerts/{alert.name}")
        if alert.signal.is_of_gold and alert.signal.group != group:
            group = alert.signal.group
            make_first_emitted(store, snapshot, conf, conf.groups[str(group)])
            in_time = f"device_group = {literal(group)} and revision = 0"
            anomalies = snapshot.generation.gold(conf.groups[str(group)].stream, "anomalies")
            record(store, snapshot, anomalies, "first_anomalies", ANOMALIES, where=in_time)
        yield timed(lambda alert=alert: _outcome(store, snapshot, conf, steps, alert))  # type: ignore[misc]


def _outcome(store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, conf: Conf, steps: Steps, alert: Alert) -> Outcome:
    """Compare changes since the alert has its condition: what it was before is not known any more, nor what changed with that."""
    name = f"gold.flows/alerts/{alert.name}"
    record(store, snapshot, "gold.alerts", "recorded_alert", COLUMNS, where=f"alert = {literal(alert.name)}")
    began = snapshot.began.get(name)
    of_alert = steps.of_alert(alert, to_micros(snapshot.closed_until.get(name, EVER)))
    presence, walls = steps.presence(alert, of_alert), [step.wall for step in of_alert]
    _make_rows(store, conf, alert, of_alert)
    sql = _prepared(store, alert, of_alert, presence)

    def expected() -> Iterator[list[Any]]:
        silent = {entity for entity, events in presence.items() if any(joins for _, joins in events)}
        for entity, samples in _samples(store, alert, sql):
            silent.discard(entity)
            yield from (_row(entity, change) for change in changes(alert, entity, samples, walls, presence.get(entity, ())))
        for entity in silent:
            yield from (_row(entity, change) for change in changes(alert, entity, [], walls, presence[entity]))

    fill(store, "expected_alert", COLUMNS, expected())
    since = "true" if began is None else f"known_at > timestamp '{began:%Y-%m-%d %H:%M:%S.%f}'"
    recorded, computed = (f"(from {table} where {since})" for table in ("recorded_alert", "expected_alert"))
    return compared(store, recorded, computed, Comparison(f"gold.alerts/{alert.name}", KEY, CELLS, {}))


def _row(entity: str, change: Change) -> list[Any]:
    row = change._asdict() | {name: from_micros(getattr(change, name)) for name in ("changed_at", "since", "known_at")} | {"entity": entity}
    row |= dict(zip(LINEAGE, change.cause.lineage if change.cause else WITHOUT_CAUSE, strict=True))
    return [row[name] for name in column_names(COLUMNS)]


def _samples(store: duckdb.DuckDBPyConnection, alert: Alert, sql: str) -> Iterator[tuple[str, list[Sample]]]:
    """Yield samples by entity, in order of step and time. Conditions of users see the fields alone, in a database of their own."""
    rows = store.sql(sql).to_arrow_reader(FETCHED)
    when = evaluated(alert.when, rows.schema)
    over = evaluated(alert.recover_when, rows.schema) if alert.recover_when else f"not {when}"
    verdict = f"case when {when} then true when {over} then false end"
    of_sample = ", ".join(f'"@".{name}' for name in ("entity", "step", "begins", *LINEAGE, "reason"))
    judged = f'select "@"."at", {verdict} as verdict, {_shown(alert, rows.schema)}::double as shown, {of_sample}'
    with duckdb.connect(config={"threads": 1, "enable_external_access": False}) as own:
        own.register("fields", rows)
        verdicts = own.execute(f'{judged} from fields order by "@".entity, "@".step, "@"."at"')
        rows_in_order = chain.from_iterable(iter(partial(verdicts.fetchmany, FETCHED), []))
        for entity, of_entity in groupby(rows_in_order, key=itemgetter(3)):
            yield (
                entity,
                [Sample(at, is_true, value, step, begins, tuple(own), why) for at, is_true, value, _, step, begins, *own, why in of_entity],
            )


def _shown(alert: Alert, schema: pa.Schema) -> str:
    """The value of a sample: of vectors and accounts the first number that `when` names; the score where it names none."""
    numbers: list[str] = [field.name for field in schema if pa.types.is_floating(field.type) or pa.types.is_integer(field.type)]
    if alert.signal.kind in {"vector", "anomaly", "account"}:
        words = re.findall(r'"(?:[^"]|"")+"|\w+', re.sub("'(?:[^']|'')*'", "", alert.when))
        named = [word.strip('"').replace('""', '"').lower() for word in words]
        numbers.sort(key=lambda name: named.index(name.lower()) if name.lower() in named else len(named))
    return quoted(numbers[0])


def _make_rows(store: duckdb.DuckDBPyConnection, conf: Conf, alert: Alert, steps: Sequence[Step]) -> None:
    """Make `came`: rows of the signal with all that conditions may name, the step in which they came, and `micros`, their time."""
    make_steps(store, steps)
    signal = alert.signal
    if signal.is_of_gold:
        make_closings(store, conf, conf.groups[str(signal.group)], steps)
        of_signal = f" where metric = {literal(signal.metric)}" if signal.metric else ""
        entity = "device_id" if signal.kind == "window" else "entity"
        table = "windows_in_steps" if signal.kind == "window" else "vectors_in_steps"
        if signal.kind == "anomaly":
            # Rows of gold.anomalies are taken as recorded: they are proved by themselves.
            of_time = 'select entity, window_end, score, is_anomaly, reason as "@reason" from first_anomalies'
            table = f"(from {table} left join ({of_time}) using (entity, window_end))"
        sql = f"select {entity} as entity, epoch_us(window_end) as micros, * exclude ({entity}) from {table}{of_signal}"
    elif signal.kind == "account":
        sql = "select source as entity, s.wall as micros, s.step as came_in, l.* exclude (source) from ledger l"
        sql += " join alert_steps s using (bronze_batch) where events > 0"
    else:
        by_group = signal.kind == "count" and signal.by == "group"
        of_metric = f"metric = {literal(signal.metric)}" if signal.metric else "true"
        of_group = f"list_contains(groups, {literal(signal.group)})" if signal.group and not by_group else "true"
        entity = "unnest(groups)" if by_group else "device_id"
        own = f"{entity} as entity, epoch_us(event_time) as micros, s.step as came_in, 1 as readings, a.* exclude (step_seconds)"
        sql = f"select {own} from {ACCEPTED} a join alert_steps s using (bronze_batch) where {of_metric} and {of_group}"
        sql = f"from ({sql}) where {f'entity = {literal(signal.group)}' if signal.group and by_group else 'true'}"
    store.execute(f"create or replace temp table came as {sql}")


def _prepared(store: duckdb.DuckDBPyConnection, alert: Alert, steps: Sequence[Step], presence: Mapping[str, Presence]) -> str:
    """Make what the query for samples with their fields needs, and return it."""
    signal = alert.signal
    newest = dict(store.execute("select came_in, max(micros) from came group by all").fetchall())
    clock = make_clock(store, alert, steps, newest)
    if signal.kind in {"count", "account"}:
        make_lives(store, presence if signal.kind == "count" else {}, clock)
        names = COUNTS if signal.kind == "account" else ("readings",)
        shares = f", {_shares()}" if signal.kind == "account" else ""
        counts = ", ".join(f"coalesce({name}, 0) as {name}" for name in names) + shares
        sums, length = ", ".join(f"sum({name})::bigint as {name}" for name in names), signal.every_seconds * SECOND
        most = 2**62 if alert.hours else max(alert.for_times, EMPTY_IN_A_ROW) * length + length
        return OF_COUNTS.format(length=length, until=clock[-1] if clock else 0, sums=sums, counts=counts, most=most)
    store.execute(TAKEN.format(step=_taken_in(alert)))
    if signal.kind == "reading":
        row = ROW.format(entity="entity", at="micros", step="step", **OF_EVENT)
        return f"select {row}, value, {PREVIOUS}, {RATE}, unit, zone, attributes from taken {SAME}"
    row = ROW.format(entity="entity", at="micros", step="step", **(OF_ANOMALY if signal.kind == "anomaly" else OF_WINDOW))
    if signal.kind == "window":
        return f"select {row}, {listed(NUMBERS)}, count, {PREVIOUS} from taken {SAME}"
    features = "".join(f"vector[{index}] as {quoted(name)}, " for index, name in enumerate(signal.features, 1))
    judged = "score, is_anomaly, " if signal.kind == "anomaly" else ""
    return f"select {row}, {judged}{features}missing, filled, len(missing) / {len(signal.features)} as missing_share from taken"


def _taken_in(alert: Alert) -> str:
    return "case when k.step is not null then greatest(c.came_in, k.step) end" if alert.wait_seconds else "c.came_in"


def _shares() -> str:
    accounted = "readings + quarantined + late + duplicates"
    return ", ".join(f"{fate} / nullif({accounted}, 0) as {fate}_share" for fate in FATES)
