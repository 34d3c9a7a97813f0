"""quality.reference: how values of a metric of a device are distributed, pinned. What is measured later is compared with it.

Append only; the newest row of a key counts. Written by whoever holds `<lake>/quality`.
"""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from orchestration.quality.measures.context import Context
from orchestration.storage.delta import OF_LOG

INSTANT = pa.timestamp("us", "UTC")
COLUMNS = (
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
SCHEMA = pa.schema([pa.field(name, kind, metadata={"comment": comment}) for name, kind, comment in COLUMNS])
"""Grain: a metric of a device, pinned once more. Key: device_id, metric, pinned_at."""

BINS = "[" + ", ".join(f"count(*) filter (value > edges[{n}])" for n in range(1, 10)) + "]"
"""How many values lie above each edge."""
SERIES = """
  select device_id, metric, epoch_us(event_time) // 3600000000 as hour, value from "{view}"
  where epoch_us(event_time) >= $first * 3600000000 and epoch_us(event_time) < $end * 3600000000
    and isfinite(value)
"""
# Seven of ten days with readings: who works from Monday to Friday has as many, and half a week would not know the other half.
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
    """Makes the table `reference`: what is pinned, and what the hours from `first` to before `end` say of series that are not. Its name.

    Where conf says which time is the reference, it is that, and what was pinned of another does not count.
    """
    store, path = context.store, context.lake.conf.lake / "quality" / "reference"
    declared, those = context.lake.conf.quality.reference, ""
    if declared is not None:
        first, end = (int(instant.timestamp() // 3600) for instant in (declared.from_at, declared.until_at))
        those = f"where epoch_us(from_at) = {first} * 3600000000 and epoch_us(until_at) = {end} * 3600000000"
    rows = DeltaTable(path).to_pyarrow_table() if DeltaTable.is_deltatable(str(path)) else SCHEMA.empty_table()
    store.register("arriving", rows)
    newest = "qualify pinned_at = max(pinned_at) over (partition by device_id, metric)"
    store.execute(f"create or replace temp table reference as from arriving {those} {newest}")
    store.unregister("arriving")
    context.needs("profile")
    (held,) = context.ask("select min(hour) as first from profile")
    if declared is not None or (held["first"] is not None and held["first"] <= first):
        _pin(context, path, {"first": first, "end": end}, min_rows)
    return "reference"


def _pin(context: Context, path: Path, hours: dict[str, int], min_rows: int) -> None:
    series = SERIES.format(view=context.shown("silver.readings"))
    # The profile is of the newest days alone, the reference of conf of any.
    of_conf = f"(select *, 1 as n from ({series}))" if context.lake.conf.quality.reference else "profile"
    context.store.execute(UNPINNED.format(hours=of_conf), hours | {"min_rows": min_rows})
    if not context.ask("select count(*) as n from unpinned")[0]["n"]:
        return
    found = context.store.sql(PINNED.format(series=series, bins=BINS), params=hours | {"now": context.now})
    rows = found.to_arrow_table().cast(SCHEMA)
    context.store.register("arriving", rows)
    context.store.execute("insert into reference by name from arriving")
    context.store.unregister("arriving")
    if context.is_kept:
        write_deltalake(path, rows, mode="append", configuration=OF_LOG)
