"""Enrichment: what the metric catalogue and the device registry know about a measurement.

Written in SQL, which both engines run: Spark for streams and replays, and DuckDB, translated, for a few events in the process.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from silver.spec import UNASSIGNED_GROUP, Metric, Policy, Unknown

METRICS = pa.schema(
    [
        *(("metric", pa.string()), ("unit", pa.string()), ("aggregation", pa.string()), ("step_seconds", pa.int32())),
        *(("minimum", pa.float64()), ("maximum", pa.float64())),
    ]
)
"""Grain: one metric."""
CONVERSIONS = pa.schema([("metric", pa.string()), ("unit", pa.string()), ("multiply", pa.float64()), ("add", pa.float64())])
"""Grain: one unit that a source may name beside the metric's own."""

VALUED = """
  select m.*, c.minimum, c.maximum, c.metric is not null as is_metric_known,
    m.unit_text is null or c.unit is null or m.unit_text = c.unit or v.metric is not null as is_unit_known,
    case when m.unit_text is null or c.unit is null or m.unit_text = c.unit then m.number else m.number * v.multiply + v.add end as value
  from {measurements} m
  left join {metrics} c on c.metric = m.metric
  left join {conversions} v on v.metric = m.metric and v.unit = m.unit_text
"""
"""Adds `value`, in the unit of the metric. A measurement without a unit is taken to be in it; a metric without a unit takes any."""
VERSIONS = """
  select device_id as registered_id, zone as registered_zone, groups as registered_groups, is_known, registered_at,
    lead(registered_at) over (partition by device_id order by registered_at) as replaced_at
  from {devices}
"""
"""Each version of a device with the instant at which the next one replaces it."""

KEYS_OF_REFERENCES = ("device_id", "zone")
REFERENCE_VERSIONS = """
  select key_of, key, attributes as referred, registered_at,
    lead(registered_at) over (partition by key_of, key order by registered_at) as replaced_at
  from {references}
"""
"""As VERSIONS, of silver.references."""
_ALL_ATTRIBUTES = """
  case when r.referred is null then m.attributes when m.attributes is null then r.referred else map_from_entries(concat(
    transform(map_entries(m.attributes), e -> struct(e.key as key, coalesce(e.value, r.referred[e.key]) as value)),
    filter(map_entries(r.referred), e -> not array_contains(map_keys(m.attributes), e.key)))) end as attributes
"""
Catalogue = tuple[pa.Table, pa.Table]
"""Rows of METRICS and of CONVERSIONS."""


def catalogue(metrics: Mapping[str, Metric]) -> Catalogue:
    """Rows of METRICS and of CONVERSIONS. Spark keeps tables of Arrow in its plan; for rows of Python it asks a process at every batch."""
    described = [vars(metric) | {"metric": metric.name} for metric in metrics.values()]
    conversions = [
        vars(factors) | {"metric": metric.name, "unit": unit} for metric in metrics.values() for unit, factors in metric.conversions.items()
    ]
    return pa.Table.from_pylist(described, METRICS), pa.Table.from_pylist(conversions, CONVERSIONS)


def described(policy: Policy) -> str:
    """SQL that adds what the metric is, and what the registry said of the device when the event was ingested; `versions`: VERSIONS.

    So the answer is the same whoever asks and whenever: the live streams, a replay, a check.
    """
    is_assigned = "d.is_known" if policy.unknown_metric is Unknown.QUARANTINE else "d.is_known and c.metric is not null"
    return f"""
      select m.*, c.unit, c.aggregation, c.step_seconds, coalesce(d.is_known, false) as is_device_known,
        coalesce(m.zone_text, case when d.is_known then d.registered_zone end) as zone,
        case when {is_assigned} then d.registered_groups else array('{UNASSIGNED_GROUP}') end as groups
      from {{measurements}} m
      left join {{metrics}} c on c.metric = m.metric
      left join {{versions}} d on d.registered_id = m.device_id and d.registered_at <= m.ingested_at
        and (d.replaced_at is null or m.ingested_at < d.replaced_at)
    """


def referred(columns: Sequence[str], key_of: str) -> str:
    """SQL of readings with what references said of their device, or of their zone, when the event was ingested.

    An attribute that the event has stays as it is: the device knows better, as with its zone. `versions`: REFERENCE_VERSIONS.
    """
    selected = ", ".join(_ALL_ATTRIBUTES if name == "attributes" else f"m.{name}" for name in columns)
    return f"""
      select {selected} from {{readings}} m
      left join {{versions}} r on r.key_of = '{key_of}' and r.key = m.{key_of} and r.registered_at <= m.ingested_at
        and (r.replaced_at is null or m.ingested_at < r.replaced_at)
    """
