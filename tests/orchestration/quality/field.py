"""Lakes of a plant that was simulated, made without Spark: what came in is sorted into the tables of silver as the layer would, and gold is
what the second evaluator makes of these.

A simulation is a table `sent`: device_id, metric, event_time, value, arrival, is_readable; a defect is SQL that changes it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from gold.schema import AGGREGATES, VECTORS
from gold.windows.spec import Group
from orchestration.audit.verify.gold_windows import vectors, windows
from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.connectors.simulator.messages import Arrivals, Kind, Messages
from orchestration.connectors.simulator.plan import DEFAULT_START, Odds, plan
from orchestration.engine.lake import Lake
from orchestration.location import Location
from silver.schema import DUPLICATES, LATE, QUARANTINE, READINGS

DEVICES = {"oven": 4, "fridge": 4, "press": 2, "pump": 2}
ROOT = Path(__file__).parents[3]
DAYS, INTERVAL = 10, 300.0
START = DEFAULT_START
SCHEMAS = {"readings": READINGS, "quarantine": QUARANTINE, "late": LATE, "duplicates": DUPLICATES}

# A file an hour: a batch holds what arrived in it.
EVALUATED = """
  create or replace table evaluated as
  with batched as (
    select *, datediff('hour', $start::timestamp, arrival) as bronze_batch, date_trunc('hour', arrival) + interval 1 hour as ingested_at
    from sent
  ),
  numbered as (select *, row_number() over (partition by bronze_batch order by arrival, device_id, metric) - 1 as bronze_row from batched),
  ruled as (
    select n.*, list_filter([
      if(not is_readable, 'payload_is_readable', null),
      if(is_readable and event_time > ingested_at + to_seconds($max_future), 'event_time_is_not_in_the_future', null),
      if(is_readable and (value is null or not isfinite(value)), 'value_is_a_number', null),
      if(is_readable and (value < m.minimum or value > m.maximum), 'value_is_in_range', null)
    ], lambda rule: rule is not null) as broken_rules,
      m.unit, m.aggregation, m.step_seconds, d.zone, d.groups
    from numbered n left join metrics m using (metric) left join devices d using (device_id)
  ),
  ahead as (
    select bronze_batch, max(max(event_time)) over (order by bronze_batch rows between unbounded preceding and 1 preceding) as newest
    from ruled where len(broken_rules) = 0 group by bronze_batch
  )
  select ruled.*, case when len(broken_rules) > 0 then 'quarantine'
      when row_number() over (partition by device_id, metric, event_time, len(broken_rules) = 0 order by bronze_batch, bronze_row) > 1
        then 'duplicates'
      when event_time < newest - to_seconds($lateness) then 'late' else 'readings' end as became,
    'plant' as source, 0 as part, 1 as parts, 'events.jsonl' as position, arrival as received_at, ''::blob as payload, 'late' as cause
  from ruled left join ahead using (bronze_batch)
"""
COUNTED = """
  select bronze_batch, source, count(*) as events, count(*) filter (became = 'readings') as readings,
    count(*) filter (became = 'quarantine') as quarantined, count(*) filter (became = 'late') as late,
    count(*) filter (became = 'duplicates') as duplicates, 0 as without_measurements, 0 as conflicts
  from evaluated group by all order by all
"""


def conf_of(folder: Path) -> Conf:
    """The default conf with some of its devices, for a lake in this folder."""
    conf = load(ROOT / "conf")
    kept = {f"{kind}-{n + 1:02d}" for kind, count in DEVICES.items() for n in range(count)}
    return replace(conf, lake=Location(folder), devices={name: device for name, device in conf.devices.items() if name in kept})


@contextmanager
def simulated(seed: int, days: float = DAYS) -> Iterator[duckdb.DuckDBPyConnection]:
    """A store with `sent`: what devices of the default conf sent, as the simulator has them behave. Instants are naive, in UTC."""
    conf = conf_of(ROOT)
    devices = list(conf.devices.values())
    events = int(days * 86_400 / INTERVAL * len(devices) * len(conf.metrics))
    this = plan(conf, devices, events=events, seed=seed, start=START, interval_seconds=INTERVAL, shape="long", odds=Odds())
    arrivals = Arrivals(this)
    parts: list[Messages] = []
    while not arrivals.is_over:
        parts.append(arrivals.until(this.start_us + (len(parts) + 1) * 86_400_000_000))
    messages = np.concatenate(parts)
    arriving = pa.table(
        {
            "device_id": pa.array([each.device_id for each in devices]).take(pa.array(messages["device"])),
            "metric": pa.array([each.name for each in this.metrics]).take(pa.array(messages["metric"])),
            "event_time": pa.array(messages["event_us"]).cast(pa.timestamp("us")),
            "value": pa.array(messages["value"][:, 0]),
            "arrival": pa.array(messages["arrival_us"]).cast(pa.timestamp("us")),
            "is_readable": pa.array(messages["kind"] != Kind.MALFORMED),
        }
    )
    with duckdb.connect() as store:
        store.execute("set TimeZone = 'UTC'")
        store.register("arriving", arriving)
        store.execute("create table sent as from arriving")
        yield store


def made(
    store: duckdb.DuckDBPyConnection, folder: Path, defects: Sequence[str] = (), after: Sequence[str] = (), until: float = DAYS
) -> Lake:
    """The lake of what was sent until days after the start; `defects` change `sent`, `after` changes `evaluated`, made by silver."""
    lake = Lake(conf_of(folder))
    store.execute("begin")
    store.execute("delete from sent where arrival >= $end", {"end": naive(START + timedelta(days=until))})
    for defect in defects:
        store.execute(defect)
    _evaluate(store, lake.conf)
    for defect in after:
        store.execute(defect)
    _write_silver(store, lake)
    _write_gold(store, lake)
    store.execute("rollback")
    return lake


def naive(instant: datetime) -> datetime:
    """In UTC, as the store holds it."""
    return instant.astimezone(UTC).replace(tzinfo=None)


def _evaluate(store: duckdb.DuckDBPyConnection, conf: Conf) -> None:
    known = [{"device_id": each.device_id, "zone": each.zone, "groups": list(each.groups)} for each in conf.devices.values()]
    metrics = [
        {name: getattr(each, name) for name in ("unit", "step_seconds", "minimum", "maximum")}
        | {"metric": each.name, "aggregation": each.aggregation.value}
        for each in conf.metrics.values()
    ]
    for name, rows in (("devices", known), ("metrics", metrics)):
        store.register(name, pa.Table.from_pylist(rows))
    limits = {"lateness": conf.policy.lateness_seconds, "max_future": conf.policy.max_future_seconds, "start": naive(START)}
    store.execute(EVALUATED, limits)
    # Nobody can read them.
    store.execute("update evaluated set device_id = null, metric = null, event_time = null, value = null where not is_readable")


def _write_silver(store: duckdb.DuckDBPyConnection, lake: Lake) -> None:
    sources = {"bronze.events": "select source, position, received_at, ingested_at, bronze_batch, bronze_row from evaluated"}
    columns_of_rows = set(store.table("evaluated").columns)
    for name, schema in SCHEMAS.items():
        _declare(store, name, schema)
        columns = ", ".join(each for each in store.table(name).columns if each in columns_of_rows)
        store.execute(f"insert into {name} by name select {columns} from evaluated where became = '{name}'")
        sources[f"silver.{name}"] = f"from {name}"
    for name, sql in sources.items():
        _write(store, lake.tables[name].location.local, sql)
    _write(store, lake.table_path("ops.ledger").local, COUNTED)


def _write_gold(store: duckdb.DuckDBPyConnection, lake: Lake) -> None:
    """Windows that have closed by the newest reading."""
    columns = "device_id, metric, event_time, value, groups, bronze_batch, bronze_row, part, became = 'late' as is_late"
    store.execute(f"create or replace temp table counted as select {columns} from evaluated where became in ('readings', 'late')")
    (newest,) = store.execute("select max(event_time) from counted").fetchall()[0]
    for group in lake.conf.groups.values():
        windows(store, group, lake.conf.metrics, (newest - timedelta(seconds=group.lateness_seconds)).replace(tzinfo=UTC))
        _write_declared(store, lake, group, "aggregates", AGGREGATES, "(select * exclude (size, value_size, first_batch) from windows)")
        if group.vector:
            vectors(store, group, group.vector, lake.conf.metrics)
            _write_declared(store, lake, group, "vectors", VECTORS, "(select * exclude (sizes) from vectors)")


def _declare(store: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema) -> None:
    """An empty table, not made `as` a query: of such a one DuckDB 2 forgets rows that are added in the same transaction."""
    rows = store.from_arrow(schema.empty_table())
    columns = ", ".join(f"{column} {kind}" for column, kind in zip(rows.columns, rows.types, strict=True))
    store.execute(f"create or replace table {name} ({columns})")


def _write_declared(  # noqa: PLR0917
    store: duckdb.DuckDBPyConnection, lake: Lake, group: Group, kind: str, schema: pa.Schema, rows: str
) -> None:
    _declare(store, "declared", schema)
    stamped = f"select *, '{group.name}' as device_group, 0 as revision, 0 as gold_batch from {rows}"
    store.execute(f"insert into declared by name {stamped}")
    _write(store, lake.table_path(lake.generation.gold(group.stream, kind)).local, "from declared")


def _write(store: duckdb.DuckDBPyConnection, path: Path, sql: str) -> None:
    write_deltalake(path, store.sql(sql).to_arrow_table(), mode="append")
