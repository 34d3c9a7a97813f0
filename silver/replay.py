"""The silver layer as a batch job, for a replay: the readings of a range of bronze batches, by today's rules. Pure.

What is late depends on how batches were cut when the events came, so it is taken as it was recorded and not decided anew.
"""

import pyarrow as pa
from pyspark.sql import DataFrame

from silver.schema import READING_COLUMNS

LATE, DUPLICATE = "late", "duplicate"
RECORDED = pa.schema([("bronze_batch", pa.int64()), ("bronze_row", pa.int64()), ("part", pa.int32()), ("kind", pa.string())])
"""Grain: one measurement that was no reading when it came. `kind`: LATE or DUPLICATE."""
REPLAYED = f"""
  select o.* from (
    select g.*, r.kind, row_number() over (
      partition by g.device_id, g.metric, g.event_time
      order by g.bronze_batch, coalesce(r.kind = '{DUPLICATE}', false), g.bronze_row, g.part
    ) as place
    from {{good}} g
    left join {{recorded}} r on r.bronze_batch = g.bronze_batch and r.bronze_row = g.bronze_row and r.part = g.part
  ) o
  left join {{before}} b on b.device_id = o.device_id and b.metric = o.metric and b.event_time = o.event_time
  where o.place = 1 and coalesce(o.kind <> '{LATE}', true) and b.device_id is null
"""
"""Readings among `good`, the accepted measurements of a range of bronze batches.

`recorded`: see RECORDED. `before`: KEYS that stand already, of batches before the range. The first batch that has a key keeps it; within a
batch, which knows no order, the measurement that was kept then.
"""


def replayed(good: DataFrame, recorded: DataFrame, before: DataFrame) -> DataFrame:
    """READING_COLUMNS of the readings among rows of `silver.readings.accepted`."""
    return good.sparkSession.sql(REPLAYED, good=good, recorded=recorded, before=before).select(*READING_COLUMNS)
