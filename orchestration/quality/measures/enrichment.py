"""Check that recent readings carry the unit, aggregation, step, groups and zone of conf and registry; older ones keep what they had."""

import pyarrow as pa

from expectations.wording import counted
from orchestration.jobs.watched_fields import missing_fields
from orchestration.quality.measures.context import Context, Row, not_checked, outcome_of
from orchestration.quality.outcome import Outcome
from orchestration.quality.store import copy_rows, row_count

METRIC_SCHEMA = pa.schema([("metric", pa.string()), ("unit", pa.string()), ("aggregation", pa.string()), ("step_seconds", pa.int32())])
DEVICE_SCHEMA = pa.schema(
    [
        *(("device_id", pa.string()), ("zone", pa.string()), ("groups", pa.list_(pa.string()))),
        *((name, pa.timestamp("us", "UTC")) for name in ("registered_at", "moved_at")),
    ]
)
# An event may name its own zone if a source has a place for one. Rows from before the newest version of a device, or before it moved, are
# not compared, and a metric that conf does not declare is not in the groups of its device.
ENRICHED = """
  with recent as (
    select device_id, metric, unit, aggregation, step_seconds, zone, groups, count(*) as n, min(ingested_at) as first,
      min(event_time) as measured_at
    from "{view}" where ingested_at > (select max(ingested_at) from "{view}") - to_hours($hours) group by all
  ),
  compared as (
    select recent.device_id, recent.metric, n, [
      if(m.metric is not null and recent.unit is distinct from m.unit, {{name: 'unit', actual: recent.unit, declared: m.unit}}, null),
      if(m.metric is not null and recent.aggregation is distinct from m.aggregation,
        {{name: 'aggregation', actual: recent.aggregation, declared: m.aggregation}}, null),
      if(m.metric is not null and recent.step_seconds is distinct from m.step_seconds,
        {{name: 'step_seconds', actual: recent.step_seconds::varchar, declared: m.step_seconds::varchar}}, null),
      if(m.metric is not null and d.device_id is not null and list_sort(recent.groups) is distinct from list_sort(d.groups),
        {{name: 'groups', actual: recent.groups::varchar, declared: d.groups::varchar}}, null),
      if(d.device_id is not null and d.zone is distinct from recent.zone and ($is_zone_registered or recent.zone is null),
        {{name: 'zone', actual: recent.zone, declared: d.zone}}, null)
    ] as wrong
    from recent left join declared_metrics m on m.metric = recent.metric
      left join declared_devices d on d.device_id = recent.device_id and first >= d.registered_at
        and (d.moved_at is null or measured_at >= d.moved_at)
  ),
  named as (select device_id, metric, n, unnest(list_filter(wrong, lambda cell: cell is not null)) as wrong from compared)
  select wrong.name as column_name, wrong.actual as actual, wrong.declared as declared, sum(n) as n,
    list_sort(list(distinct device_id)) as devices, list_sort(list(distinct metric)) as metrics
  from named group by all order by n desc, column_name
"""


def coming_fields(context: Context, table: str) -> Outcome:
    """Every field that conf declares of wide rows still comes, by what runs have seen."""
    return outcome_of([{"what": missing} for missing in missing_fields(context.lake.conf.lake)], lambda row: str(row["what"]), "they come")


def as_declared(context: Context, table: str, *, hours: int) -> Outcome:
    """Rows that arrived in the last hours are enriched as conf says now."""
    conf, view = context.lake.conf, context.view_of(table)
    metrics = [
        {"metric": metric.name, "unit": metric.unit, "aggregation": metric.aggregation.value, "step_seconds": metric.step_seconds}
        for metric in conf.metrics.values()
    ]
    devices = [{name: device[name] for name in DEVICE_SCHEMA.names} for device in context.devices]
    copy_rows(context.store, "declared_metrics", pa.Table.from_pylist(metrics, METRIC_SCHEMA))
    copy_rows(context.store, "declared_devices", pa.Table.from_pylist(devices, DEVICE_SCHEMA))
    is_zone_registered = all(source.payload_format.zone is None for source in conf.sources.values())
    wrong = context.ask(ENRICHED.format(view=view), hours=hours, is_zone_registered=is_zone_registered)
    if not row_count(context.store, view):
        return not_checked("there are no rows")
    return outcome_of(wrong, _describe, "unit, aggregation, step, groups and zone are what conf says")


def _describe(row: Row) -> str:
    subject = " and ".join(_few(row[kind], word) for kind, word in (("metrics", "metric"), ("devices", "device")))
    return (
        f"wrong enrichment: {row['column_name']} of {subject} is {row['actual']}, conf says {row['declared']} ({counted(row['n'], 'row')})"
    )


def _few(names: list[str], word: str) -> str:
    return f"{word} {names[0]}" if len(names) == 1 else f"{counted(len(names), word)} ({', '.join(names[:3])}{', ..' * (len(names) > 3)})"
