"""quality.reference: the distribution of a metric of a device in a reference period, with which later values are compared.

Append only; the newest row of a key counts. The writer holds `quality_tables.lock`.
"""

import pyarrow as pa

from bronze.schema import INSTANT, declared
from orchestration.quality import quality_tables
from orchestration.quality.measures.context import Context
from orchestration.quality.store import copy_rows

REFERENCE = "quality.reference"
REFERENCE_SCHEMA = declared(
    ("device_id", pa.string(), "as the source names it"),
    ("metric", pa.string(), "name in conf/metrics.yml"),
    ("edges", pa.list_(pa.float64()), "the nine deciles of its values"),
    ("counts", pa.list_(pa.int64()), "values up to the first, up to the second, .., above the last of them"),
    ("mean", pa.float64(), "of its values"),
    ("deviation", pa.float64(), "standard deviation of its values"),
    ("from_at", INSTANT, "its values were measured from then"),
    ("until_at", INSTANT, "until then, UTC"),
    ("pinned_at", INSTANT, "by a run that began then"),
)
"""Grain: a metric of a device, pinned once more. Key: device_id, metric, pinned_at."""

BINS = "[" + ", ".join(f"count(*) filter (value > edges[{n}])" for n in range(1, 10)) + "]"
"""How many values lie above each edge."""
SERIES = """
  select device_id, metric, epoch_us(event_time) // 3600000000 as hour, value from "{view}"
  where epoch_us(event_time) >= $first * 3600000000 and epoch_us(event_time) < $end * 3600000000
    and isfinite(value)
"""
# Readings on seven of ten days: a device that works from Monday to Friday has as many, and half a week is no reference.
UNPINNED = """
  create or replace temp table unpinned as
  with kept as (
    select device_id, metric from {hours} where hour >= $first and hour < $end
    group by all having count(distinct hour // 24) >= 0.7 * ($end - $first) / 24 and sum(n) >= $min_rows
  )
  from kept anti join reference using (device_id, metric)
"""
PINNED = """
  with series as ({series}),
  placed as (
    select device_id, metric, quantile_disc(value, [.1, .2, .3, .4, .5, .6, .7, .8, .9]) as edges, count(*) as n,
      avg(value) as mean, stddev_pop(value) as deviation
    from series semi join unpinned using (device_id, metric) group by all
  ),
  binned as (select device_id, metric, {bins} as above from series join placed using (device_id, metric) group by all)
  select device_id, metric, edges,
    list_transform(range(10), lambda i: if(i = 0, n, above[i]) - if(i = 9, 0, above[i + 1])) as counts, mean, deviation,
    make_timestamptz($first * 3600000000) as from_at, make_timestamptz($end * 3600000000) as until_at, $now::timestamptz as pinned_at
  from placed join binned using (device_id, metric) order by all
"""


def reference(context: Context, first: int, end: int, min_rows: int) -> str:
    """Create the table `reference` and return its name: pinned rows, and for other series those of the hours `first` <= hour < `end`.

    If conf declares the reference period, only that period counts.
    """
    store, lake = context.store, context.lake.conf.lake
    declared, condition = context.lake.conf.quality.reference, ""
    if declared is not None:
        first, end = (int(instant.timestamp() // 3600) for instant in (declared.from_at, declared.until_at))
        condition = f"where epoch_us(from_at) = {first} * 3600000000 and epoch_us(until_at) = {end} * 3600000000"
    copy_rows(store, "pinned", quality_tables.read(lake, REFERENCE, REFERENCE_SCHEMA))
    newest = "qualify pinned_at = max(pinned_at) over (partition by device_id, metric)"
    store.execute(f"create or replace temp table reference as from pinned {condition} {newest}")
    context.needs("profile")
    (held,) = context.ask("select min(hour) as first from profile")
    if declared is not None or (held["first"] is not None and held["first"] <= first):
        _pin(context, {"first": first, "end": end}, min_rows)
    return "reference"


def _pin(context: Context, hours: dict[str, int], min_rows: int) -> None:
    series = SERIES.format(view=context.view_of("silver.readings"))
    # The profile covers the newest days only, the period in conf may be any.
    of_conf = f"(select *, 1 as n from ({series}))" if context.lake.conf.quality.reference else "profile"
    context.store.execute(UNPINNED.format(hours=of_conf), hours | {"min_rows": min_rows})
    if not context.ask("select count(*) as n from unpinned")[0]["n"]:
        return
    pinned = context.store.sql(PINNED.format(series=series, bins=BINS), params=hours | {"now": context.now})
    rows = pinned.to_arrow_table().cast(REFERENCE_SCHEMA)
    copy_rows(context.store, "pinned", rows)
    context.store.execute("insert into reference by name from pinned")
    if context.is_kept:
        quality_tables.append(context.lake.conf.lake, REFERENCE, rows)
