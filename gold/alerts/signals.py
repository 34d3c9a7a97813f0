"""Signals of alerts: rows of silver, gold or the ledger become samples with a verdict, in SQL of DuckDB.

A sample is one row of one entity at one instant. Its verdict is true where `when` is true, false where `recover_when` is true (or `when` is
false, if there is none), and null elsewhere.

Samples come in slices of time. What a slice needs of those before it is `carried`, a small table with a row for each entity: its newest
value, or what its open interval has counted so far.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from expectations.condition import condition
from expectations.rule import Kind
from gold.alerts.spec import Alert, Signal
from gold.instants import SECOND, to_micros

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FATES = ("quarantined", "late", "duplicates", "conflicts")
OF_ACCOUNT = ("events", "readings", *FATES)
WINDOW = ("count", "min", "max", "sum", "latest")
OF_PREVIOUS = dict.fromkeys(("value", "previous", "change"), Kind.NUMBER)
OF_READING = dict.fromkeys(("seconds", "rate"), Kind.NUMBER) | dict.fromkeys(("unit", "zone"), Kind.TEXT) | {"attributes": Kind.ATTRIBUTES}
FIELDS: dict[str, dict[str, Kind]] = {
    "reading": OF_PREVIOUS | OF_READING,
    "window": OF_PREVIOUS | dict.fromkeys(WINDOW, Kind.NUMBER),
    "vector": {"missing": Kind.TEXTS, "filled": Kind.TEXTS, "missing_share": Kind.NUMBER},
    "count": {"readings": Kind.NUMBER},
    "account": dict.fromkeys((*OF_ACCOUNT, *(f"{fate}_share" for fate in FATES)), Kind.NUMBER),
}
FAST_FIELDS = {name: FIELDS["reading"][name] for name in ("value", "unit", "zone")}
"""Fields that conditions of fast alerts may name."""
ROWS = {"reading": "silver.readings", "count": "silver.readings", "window": "gold.aggregates_history", "vector": "gold.vectors_history"}
"""The table of which `samples` takes rows. Of account it takes rows of ops.ledger, with `ingested_at` of their bronze batch."""
OF_BATCHES = """(
  select bronze_batch, make_timestamptz(greatest(max(began - place) over (order by bronze_batch), {since}) + place) as ingested_at from (
    select bronze_batch, epoch_us(max(ingested_at)) as began, row_number() over (order by bronze_batch) - 1 as place
    from {events} group by bronze_batch
  )
)"""
"""When each bronze batch began, from `since` on (microseconds since 1970); where a later number did not begin later, right behind the one
before: so each is in one slice."""
LINEAGE = ("ingested_at", "bronze_batch", "bronze_row", "part", "window_start", "window_end")
SAMPLE = (
    'struct(entity varchar, "at" timestamptz, ingested_at timestamptz, bronze_batch bigint, bronze_row bigint, part integer, '
    "window_start timestamptz, window_end timestamptz)"
)
"""Type of the column `@`: what a sample is beside its fields, in one column that no metric has the name of."""
CONTINUED = """{raw} union all by name select {sample} as "@", value from {before}"""
WITH_PREVIOUS = """
select *, lag(value) over w as previous, value - previous as change, (epoch_us("@"."at") - lag(epoch_us("@"."at")) over w) / 1e6 as seconds,
  change / nullif(seconds, 0) as rate
from raw window w as (partition by "@".entity order by "@"."at")"""
NEWEST = """select "@".entity as entity, max("@"."at") as "at", arg_max_null(value, "@"."at") as value from raw group by all"""
COUNTED = """
select entity, "at", {sums} from (
  select {entity} as entity, make_timestamptz(epoch_us({time}) - epoch_us({time}) % {step} + {step}) as "at", {counts}
  from {rows} where {time} >= {since} and {time} < {until}{where} union all by name from {before}
){of_group} group by all"""
WITH_EMPTY_INTERVALS = """
with ends as (select entity, unnest(range(min(epoch_us("at")), {until}, {step})) as micros from raw group by entity)
select {sample} as "@", {counts} from ends left join raw on raw.entity = ends.entity and epoch_us(raw."at") = micros"""
OPEN = """select entity, make_timestamptz({open}) as "at", {counts} from raw group by entity"""


def fields(signal: Signal) -> dict[str, Kind]:
    """Return the fields that conditions may name."""
    return dict.fromkeys(signal.features, Kind.NUMBER) | FIELDS[signal.kind]


def samples(
    store: "duckdb.DuckDBPyConnection", alert: Alert, rows: str, carried: "pa.Table | None" = None, *, since: datetime, until: datetime
) -> "tuple[pa.Table, pa.Table | None]":
    """Samples of [since, until) in order of time, and what the next slice carries. `rows`: a table, or a query in brackets; see ROWS.
    Columns: entity, at, lineage, value, verdict, as gold.schema.SAMPLES has them. `carried` None: nothing came before."""
    store.execute("set TimeZone = 'UTC'")
    if carried is not None:
        store.register("carried", carried)
    before = (
        "carried"
        if carried is not None
        else '(select null::varchar as entity, null::timestamptz as "at", null::double as value where false)'
    )
    raw, with_fields, newest = _queries(alert.signal, rows, before, since, until)
    store.execute(f"create or replace temp table raw as {raw}")
    rows_of_samples = store.sql(
        f'select "@".*, {_quoted(shown(alert))}::double as value, {verdict(alert)} as verdict from ({with_fields}) as sample '
        f'where "@"."at" >= {_instant(since)} order by "@"."at", "@".entity'
    ).to_arrow_table()
    return rows_of_samples, store.sql(newest).to_arrow_table() if newest else None


def verdict(alert: Alert) -> str:
    """SQL of the verdict, over the fields of the signal."""
    named = fields(alert.signal)
    over = condition(alert.when, named).sql
    recovers = condition(alert.recover_when, named).sql if alert.recover_when else f"not {over}"
    return f"case when {over} then true when {recovers} then false end"


def of_signal(signal: Signal) -> str:
    """SQL: whether a reading is of its metric and group."""
    return f"metric = {_literal(signal.metric)}{_of_group(signal)}"


def shown(alert: Alert) -> str:
    """The field that is the value of a sample: of vector and account the first number that `when` names, else value or readings."""
    named = fields(alert.signal)
    asked = condition(alert.when, named).columns if alert.signal.kind in ("vector", "account") else ()
    return next(name for name in (*asked, *named) if named[name] is Kind.NUMBER)


def _queries(signal: Signal, rows: str, before: str, since: datetime, until: datetime) -> tuple[str, str, str]:
    """Return three queries: the rows of a slice with what is carried; these with all fields; what is carried on, if anything is."""
    bounds = f"{{time}} >= {_instant(since)} and {{time}} < {_instant(until)}"
    match signal.kind:
        case "reading":
            where = f"{bounds.format(time='event_time')} and {of_signal(signal)}"
            sample = _sample("device_id", "event_time", LINEAGE[:4])
            raw = f'select {sample} as "@", value, unit, zone, attributes from {rows} where {where}'
        case "window":
            of_metric = f"device_group = {_literal(signal.group)} and metric = {_literal(signal.metric)} and revision = 0"
            sample = _sample("device_id", "window_end", LINEAGE[4:])
            where = f"{bounds.format(time='window_end')} and {of_metric}"
            raw = f'select {sample} as "@", value, {", ".join(WINDOW)} from {rows} where {where}'
        case "vector":
            return _of_vectors(signal, rows, bounds.format(time="window_end")), "from raw", ""
        case _:
            return _of_intervals(signal, rows, before, since, until)
    return CONTINUED.format(raw=raw, before=before, sample=_sample("entity", '"at"', ())), WITH_PREVIOUS, NEWEST


def _of_vectors(signal: Signal, rows: str, where: str) -> str:
    features = "".join(f"vector[{number}] as {_quoted(name)}, " for number, name in enumerate(signal.features, 1))
    size = len(signal.features)
    return (
        f'select {_sample("entity", "window_end", LINEAGE[4:])} as "@", {features}missing, filled, len(missing) / {size} as missing_share '
        f"from {rows} where {where} and device_group = {_literal(signal.group)} and revision = 0 and len(vector) = {size}"
    )


def _of_intervals(signal: Signal, rows: str, before: str, since: datetime, until: datetime) -> tuple[str, str, str]:
    """Return the queries for count and account. An interval that is not over at `until` is carried on with its count."""
    step, end = signal.every_seconds * SECOND, to_micros(until)
    is_account, by_group = signal.kind == "account", signal.by == "group"
    names = OF_ACCOUNT if is_account else ("readings",)
    raw = COUNTED.format(
        rows=rows,
        before=before,
        entity="source" if is_account else "unnest(groups)" if by_group else "device_id",
        time="ingested_at" if is_account else "event_time",
        counts=", ".join(names) if is_account else "1 as readings",
        sums=", ".join(f"sum({name})::bigint as {name}" for name in names),
        step=step,
        since=_instant(since),
        until=_instant(until),
        where=(f" and metric = {_literal(signal.metric)}" if signal.metric else "") + ("" if by_group else _of_group(signal)),
        of_group=f" where entity = {_literal(signal.group)}" if by_group and signal.group else "",
    )
    counts = ", ".join(f"coalesce({name}, 0) as {name}" for name in names)
    if is_account:
        counts += "".join(f", {fate} / nullif(readings + quarantined + late + duplicates, 0) as {fate}_share" for fate in FATES)
    sample = _sample("ends.entity", "make_timestamptz(micros)", ())
    with_fields = WITH_EMPTY_INTERVALS.format(until=end, step=step, sample=sample, counts=counts)
    following = -(-end // step) * step
    kept = ", ".join(f'coalesce(max({name}) filter (where epoch_us("at") = {following}), 0) as {name}' for name in names)
    return raw, with_fields, OPEN.format(open=following, counts=kept)


def _of_group(signal: Signal) -> str:
    return f" and list_contains(groups, {_literal(signal.group)})" if signal.group else ""


def _sample(entity: str, at: str, lineage: tuple[str, ...]) -> str:
    """A value of SAMPLE: `lineage` are columns, the rest of it is null."""
    values = [entity, at, *(name if name in lineage else "null" for name in LINEAGE)]
    return f"row({', '.join(values)})::{SAMPLE}"


def _instant(at: datetime) -> str:
    return f"timestamptz '{at.isoformat()}'"


def _literal(text: str | None) -> str:
    return "'" + (text or "").replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
