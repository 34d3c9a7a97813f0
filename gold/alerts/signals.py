"""Signals of alerts: rows of silver, gold or the ledger become samples with a verdict, in SQL of DuckDB.

A sample is one row of one entity at one instant. Its verdict is true where `when` is true, false where `recover_when` is true (or `when` is
false, if there is none), and null elsewhere.

Rows come in the steps of a slice (see states.py). What a slice needs of those before it is carried: the clock of the signal, the newest
value of each entity, rows that wait, or what open intervals have counted so far.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from expectations.condition import condition
from expectations.rule import Kind
from gold.alerts.hours import NEVER
from gold.alerts.spec import Alert, Signal
from gold.instants import SECOND

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FATES = ("quarantined", "late", "duplicates", "conflicts")
OF_ACCOUNT = ("events", "readings", *FATES)
WINDOW = ("count", "min", "max", "sum", "latest")
OF_PREVIOUS = dict.fromkeys(("value", "previous", "change"), Kind.NUMBER)
OF_READING = dict.fromkeys(("seconds", "rate"), Kind.NUMBER) | dict.fromkeys(("unit", "zone"), Kind.TEXT) | {"attributes": Kind.ATTRIBUTES}
OF_VECTOR = {"missing": Kind.TEXTS, "filled": Kind.TEXTS, "missing_share": Kind.NUMBER}
OF_ANOMALY = {"score": Kind.NUMBER, "is_anomaly": Kind.BOOLEAN}
"""Fields of a vector that gold.anomalies has."""
FIELDS: dict[str, dict[str, Kind]] = {
    "reading": OF_PREVIOUS | OF_READING,
    "window": OF_PREVIOUS | dict.fromkeys(WINDOW, Kind.NUMBER),
    "vector": OF_VECTOR,
    "anomaly": OF_VECTOR,
    "count": {"readings": Kind.NUMBER},
    "account": dict.fromkeys((*OF_ACCOUNT, *(f"{fate}_share" for fate in FATES)), Kind.NUMBER),
}
FAST_FIELDS = {name: FIELDS["reading"][name] for name in ("value", "unit", "zone")}
"""Fields that conditions of fast alerts may name."""
LINEAGE = ("ingested_at", "bronze_batch", "bronze_row", "part", "window_start", "window_end")
SAMPLE = (
    'struct(entity varchar, "at" timestamptz, ingested_at timestamptz, bronze_batch bigint, bronze_row bigint, part integer, '
    "window_start timestamptz, window_end timestamptz)"
)
"""Type of the column `@`: what a sample is beside its fields, in one column that no metric has the name of."""
TAKEN = """
select arrived.*, case when "@is_taken" then -1 when not {waits} then "@step"
  when closings.step is not null then greatest("@step", closings.step) end as "@taken_in"
from arrived asof left join closings on "@micros" <= closings.until"""
"""Rows with the step that takes them: that in which they come, or the first one in which the clock of the signal has passed them by
`wait_seconds`; null where they still wait."""
WITH_PREVIOUS = """
select *, lag(value) over w as previous, value - previous as change, ("@micros" - lag("@micros") over w) / 1e6 as seconds,
  change / nullif(seconds, 0) as rate
from (
  select *, coalesce("@micros" > max("@micros") over (
    partition by "@".entity order by "@taken_in" range between unbounded preceding and 1 preceding), true) as "@is_newest"
  from taken where "@taken_in" is not null
) window w as (partition by "@".entity, "@is_newest", case when "@is_newest" then 0 else "@taken_in" end order by "@micros")"""
"""A row that is older than those of steps before follows rows of its own step alone."""
WAITING = """select * exclude ("@taken_in") replace (-1 as "@step") from taken where "@taken_in" is null"""
NEWEST = """
union all by name select "@", "@micros", value, -1 as "@step", true as "@is_taken" from taken where "@taken_in" is not null
qualify row_number() over (partition by "@".entity order by "@micros" desc) = 1"""


@dataclass(frozen=True)
class Carried:
    """State of a signal between two slices. `newest`: the event time of the row that set its clock, and `came` the wall clock of its step.
    The clock never goes back; it has passed `closed`, and rings at the wall clock `rings_at` for what waits. `rows`: of a table of DuckDB;
    None where nothing came. Instants in microseconds since 1970."""

    newest: int | None = None
    came: int = 0
    closed: int = -NEVER
    rings_at: int | None = None
    rows: "pa.Table | None" = None


NOTHING_CARRIED = Carried()


class Closing(NamedTuple):
    """A step, and up to where the clock of the signal is past `wait_seconds` before it and with it."""

    step: int
    past: int
    until: int


def fields(signal: Signal) -> dict[str, Kind]:
    """Return the fields that conditions may name."""
    first = OF_ANOMALY if signal.kind == "anomaly" else {}
    return first | dict.fromkeys(signal.features, Kind.NUMBER) | FIELDS[signal.kind]


def anomaly_fields(text: str, signal: Signal) -> list[str]:
    """Return the fields of gold.anomalies that a condition over vectors names."""
    return [name for name in condition(text, fields(replace(signal, kind="anomaly"))).columns if name in OF_ANOMALY]


def row_samples(
    store: "duckdb.DuckDBPyConnection", alert: Alert, rows: str, walls: Sequence[int], carried: Carried
) -> "tuple[pa.Table, Carried]":
    """See samples.samples."""
    store.execute("set TimeZone = 'UTC'")
    from_carried = ""
    if carried.rows is not None:
        store.register("carried", carried.rows)
        from_carried = " union all by name from carried"
    store.execute(f"create or replace temp table arrived as {_arrived(alert.signal, rows)}{from_carried}")
    newest = store.execute('select "@step", max("@micros") from arrived where "@step" >= 0 group by all').fetchall()
    closings, clock = pass_clock(alert, carried, dict(newest), walls)
    register_closings(store, closings)
    store.execute(f"create or replace temp table taken as {TAKEN.format(waits=alert.wait_seconds > 0)}")
    has_previous = not alert.signal.features
    taken = judged(store, alert, WITH_PREVIOUS if has_previous else "from taken", '"@taken_in"')
    rows_left = store.sql(WAITING + (NEWEST if has_previous else "")).to_arrow_table()
    (oldest,) = store.execute('select min("@micros") from taken where "@taken_in" is null').fetchall()[0]
    return taken, replace(clock, rows=rows_left, rings_at=rings_at(alert, clock, oldest))


def judged(store: "duckdb.DuckDBPyConnection", alert: Alert, with_fields: str, step: str) -> "pa.Table":
    """Samples with their verdicts, of a query for their fields."""
    reason = '"@reason"' if alert.signal.kind == "anomaly" else "null::varchar"
    return store.sql(
        f'select "@".*, {_quoted(shown(alert))}::double as value, {verdict(alert)} as verdict, {step}::int as step, {reason} as reason '
        f'from ({with_fields}) as sample where {step} >= 0 order by {step}, "@".entity, "@"."at"'
    ).to_arrow_table()


def pass_clock(alert: Alert, carried: Carried, newest: Mapping[int, int], walls: Sequence[int]) -> tuple[list[Closing], Carried]:
    """Pass from step to step. `newest`: the event time of the newest row of each step that has rows. An account goes by the wall clock."""
    at, came, closed, closings = carried.newest, carried.came, carried.closed, []
    for step, wall in enumerate(walls):
        past, row_at = closed, wall if alert.signal.kind == "account" else newest.get(step)
        if row_at is not None and (at is None or row_at > at + wall - came):
            at, came = row_at, wall
        if at is not None:
            closed = max(closed, at + wall - came - alert.wait_seconds * SECOND)
        closings.append(Closing(step, past, closed))
    return closings, Carried(at, came, closed)


def rings_at(alert: Alert, clock: Carried, waiting: int | None) -> int | None:
    """Return the wall clock at which a row, or the end of an interval, has waited long enough."""
    if waiting is None or clock.newest is None:
        return None
    return clock.came + waiting + alert.wait_seconds * SECOND - clock.newest


def register_closings(store: "duckdb.DuckDBPyConnection", closings: Sequence[Closing]) -> None:
    """Make the tables `closed` and `closings`, which has the first step of each instant."""
    columns = [[*column] for column in zip(*closings, strict=True)] or [[], [], []]
    unnested = ", ".join(f"unnest(?::bigint[]) as {name}" for name in Closing._fields)
    store.execute(f"create or replace temp table closed as select {unnested}", columns)
    store.execute("create or replace temp table closings as select until, min(step) as step from closed group by until")


def verdict(alert: Alert) -> str:
    """SQL of the verdict, over the fields of the signal."""
    named = fields(alert.signal)
    over = condition(alert.when, named).sql
    recovers = condition(alert.recover_when, named).sql if alert.recover_when else f"not {over}"
    return f"case when {over} then true when {recovers} then false end"


def of_signal(signal: Signal) -> str:
    """SQL: whether a reading is of its metric and group."""
    return f"metric = {sql_text(signal.metric)}{of_group(signal)}"


def shown(alert: Alert) -> str:
    """The field that is the value of a sample: of vectors and account the first number that `when` names, else value, readings or score."""
    named = fields(alert.signal)
    asked = condition(alert.when, named).columns if alert.signal.features or alert.signal.kind == "account" else ()
    return next(name for name in (*asked, *named) if named[name] is Kind.NUMBER)


def _arrived(signal: Signal, rows: str) -> str:
    """Return a query for the rows of a slice. No metric has a name with @."""
    device_group = f"device_group = {sql_text(signal.group)}"
    match signal.kind:
        case "reading":
            entity, at, columns, where = "device_id", "event_time", "value, unit, zone, attributes", of_signal(signal)
        case "window":
            entity, at, columns = "device_id", "window_end", f"value, {', '.join(WINDOW)}"
            where = f"{device_group} and metric = {sql_text(signal.metric)}"
        case _:
            size = len(signal.features)
            features = "".join(f"vector[{number}] as {_quoted(name)}, " for number, name in enumerate(signal.features, 1))
            entity, at, where = "entity", "window_end", f"{device_group} and len(vector) = {size}"
            columns = f"{features}missing, filled, len(missing) / {size} as missing_share"
            columns += ', score, is_anomaly, reason as "@reason"' if signal.kind == "anomaly" else ""
    lineage = LINEAGE[:4] if signal.kind == "reading" else LINEAGE[4:]
    own = f'{sample_of(entity, at, lineage)} as "@", epoch_us({at}) as "@micros", step as "@step", false as "@is_taken"'
    return f"select {own}, {columns} from {rows} where {where}"


def of_group(signal: Signal) -> str:
    """SQL behind another condition: whether a reading is of its group."""
    return f" and list_contains(groups, {sql_text(signal.group)})" if signal.group else ""


def sample_of(entity: str, at: str, lineage: tuple[str, ...]) -> str:
    """Return a value of SAMPLE: `lineage` are columns, the rest of it is null."""
    values = [entity, at, *(name if name in lineage else "null" for name in LINEAGE)]
    return f"row({', '.join(values)})::{SAMPLE}"


def sql_text(text: str | None) -> str:
    """Write a text as SQL does."""
    return "'" + (text or "").replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
