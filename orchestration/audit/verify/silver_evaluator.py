"""Silver once more: bronze events to accepted and rejected measurements, by pyarrow, Python and DuckDB alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from orchestration.audit.verify.measurements import MEASUREMENTS, measurements
from orchestration.audit.verify.rules import broken_rules
from orchestration.audit.verify.store import INSTANT, QUARANTINE, READINGS, column_names, plain
from orchestration.conf.model import Conf
from orchestration.storage.payload_formats import payload_formats
from silver.spec import UNASSIGNED_GROUP, PayloadFormat, Unknown

READING_COLUMNS, QUARANTINE_COLUMNS = column_names(READINGS), column_names(QUARANTINE)
OF_EVENT = ("source", "ingested_at", "bronze_batch", "bronze_row")
OF_REJECTED_EVENT = ("payload", "header", "position", "received_at")


class Registered(NamedTuple):
    """silver.devices and silver.references, as they are recorded."""

    devices: pa.Table
    references: pa.Table


class Evaluated(NamedTuple):
    """Every measurement of every event is in exactly one: columns of silver.readings, of silver.quarantine."""

    accepted: pa.Table
    rejected: pa.Table


@dataclass(frozen=True)
class SilverEvaluator:
    """Applies conf and registry to events; made once for many tables of them."""

    conf: Conf
    connection: duckdb.DuckDBPyConnection
    sql: str

    @classmethod
    def of(cls, conf: Conf, registry: Registered) -> "SilverEvaluator":
        """ConfError names a rule that DuckDB cannot evaluate."""
        connection = duckdb.connect(config={"threads": 1})
        connection.register("catalogue", _catalogue(conf))
        connection.register("conversions", _conversions(conf))
        connection.register("devices", plain(registry.devices))
        connection.register("references_", plain(registry.references))
        tables = {"known_metrics": "catalogue", "known_conversions": "conversions", "versions": f"({VERSIONS})", "referred": "references_"}
        for name, sql in tables.items():
            connection.execute(f"create table {name} as from {sql}")
        return cls(conf, connection, _sql(conf, [*pc.unique(registry.references["key_of"]).to_pylist()]))

    def evaluate(self, events: pa.Table) -> Evaluated:
        """Events of sources that the lake does not know are of neither side."""
        events = plain(events)
        shapes = payload_formats(self.conf).items()
        typed = pa.concat_tables([MEASUREMENTS.empty_table(), *(self._typed(events, source, shape) for source, shape in shapes)])
        of_event = events.select(OF_EVENT).take(typed["event_at"])
        rows = typed.set_column(typed.schema.get_field_index("event_time"), "event_time", typed["event_time"].cast(INSTANT))
        for name in OF_EVENT:
            rows = rows.append_column(name, of_event[name])
        self.connection.register("measured", rows)
        evaluated = self.connection.sql(self.sql).to_arrow_table()
        is_accepted = pc.equal(pc.list_value_length(evaluated["broken_rules"]), 0)
        rejected = evaluated.filter(pc.invert(is_accepted))
        of_rejected = events.select(OF_REJECTED_EVENT).take(rejected["event_at"])
        for name in OF_REJECTED_EVENT:
            rejected = rejected.append_column(name, of_rejected[name])
        return Evaluated(evaluated.filter(is_accepted).select(READING_COLUMNS), rejected.select(QUARANTINE_COLUMNS))

    def _typed(self, events: pa.Table, source: str, shape: PayloadFormat) -> pa.Table:
        places = pc.indices_nonzero(pc.equal(events["source"], source))
        measured = measurements(events.take(places), shape, self.conf.policy.max_payload_bytes)
        return measured.set_column(0, MEASUREMENTS.field(0), places.take(measured["event_at"]).cast(pa.int32()))


VERSIONS = """
  select device_id, zone, groups, is_known, registered_at,
    lead(registered_at) over (partition by device_id order by registered_at) as replaced_at
  from devices
"""
MEASURED = """
  select m.*, c.unit, c.aggregation, c.step_seconds, c.minimum, c.maximum, c.metric is not null as is_metric_known,
    unit_text is null or c.unit is null or unit_text = c.unit as is_own_unit,
    is_own_unit or v.multiply is not null as is_unit_known,
    case when is_own_unit then number else number * v.multiply + v.add end as value
  from measured m
  left join known_metrics c on c.metric = m.metric
  left join known_conversions v on v.metric = m.metric and v.unit = m.unit_text
"""
ENRICHED = """
  select m.*, coalesce(d.is_known, false) as is_device_known,
    case when {is_assigned} then d.groups else ['{unassigned}'] end as groups,
    coalesce(zone_text, case when is_device_known then d.zone end) as zone
  from ({measured}) m
  left join versions d
    on d.device_id = m.device_id and d.registered_at <= m.ingested_at and (d.replaced_at is null or m.ingested_at < d.replaced_at)
"""


SAID = """
  select * exclude (own, said, names)
    replace (case when said is null then attributes else map(names, [coalesce(own[name], said[name]) for name in names]) end as attributes)
  from (
    select m.*, coalesce(m.attributes, map {{}}) as own, r.attributes as said,
      map_keys(own) || [name for name in map_keys(said) if not list_contains(map_keys(own), name)] as names
    from ({evaluated}) m
    asof left join (from referred where key_of = '{key_of}') r on r.key = m.{key_of} and r.registered_at <= m.ingested_at
  )
"""


def _sql(conf: Conf, key_of: Sequence[str]) -> str:
    """`key_of`: of what references say something."""
    is_assigned = "is_device_known" + ("" if conf.policy.unknown_metric is Unknown.QUARANTINE else " and is_metric_known")
    enriched = ENRICHED.format(is_assigned=is_assigned, unassigned=UNASSIGNED_GROUP, measured=MEASURED)
    sql = f"select {', '.join(READING_COLUMNS)}, event_at, {broken_rules(conf)} as broken_rules from ({enriched})"
    for name in sorted(key_of):
        sql = SAID.format(evaluated=sql, key_of=name)
    return sql


def _catalogue(conf: Conf) -> pa.Table:
    types = [("metric", pa.string()), ("unit", pa.string()), ("aggregation", pa.string()), ("step_seconds", pa.int32())]
    schema = pa.schema([*types, ("minimum", pa.float64()), ("maximum", pa.float64())])
    rows = [
        (metric.name, metric.unit, metric.aggregation.value, metric.step_seconds, metric.minimum, metric.maximum)
        for metric in conf.metrics.values()
    ]
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def _conversions(conf: Conf) -> pa.Table:
    schema = pa.schema([("metric", pa.string()), ("unit", pa.string()), ("multiply", pa.float64()), ("add", pa.float64())])
    rows = [
        {"metric": metric.name, "unit": unit, "multiply": conversion.multiply, "add": conversion.add}
        for metric in conf.metrics.values()
        for unit, conversion in metric.conversions.items()
    ]
    return pa.Table.from_pylist(rows, schema)
