"""Idle groups: when no reading has come for `idle_close_seconds`, a tick closes the windows that are still open.

A tick is an instant in `ops.ticks`, not an event: it moves the watermark of one gold stream past the end of every window
that its readings can have opened, and is in none of them.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import inf, isinf

import pyarrow as pa
from pyspark.sql import functions as F

from gold.spec import Group
from gold.windows import of_groups
from orchestration.engine.lake import Lake
from orchestration.storage.delta import append, rows_of
from orchestration.storage.ops_tables import TICKS, TICKS_SCHEMA


def patience_seconds(groups: Sequence[Group]) -> float:
    """How long the least patient group of a stream waits; infinite where none closes when idle."""
    return min((group.idle_close_seconds for group in groups if group.idle_close_seconds is not None), default=inf)


def tick_if_idle(lake: Lake, stream: str, groups: Sequence[Group], now: datetime) -> bool:
    """Tick the stream if its readings stopped coming long enough ago and it was not ticked since. True if it was."""
    patience = patience_seconds(groups)
    if isinf(patience):
        return False
    of_stream = of_groups(lake.read("silver.readings"), groups)
    # First what came lately, which is in a few files: all of silver takes longer the more there is.
    if not of_stream.where(F.col("ingested_at") > now - timedelta(seconds=patience)).isEmpty():
        return False
    # Arrow keeps an instant an instant. Rows of PySpark hold the local time of this machine, without a zone.
    ((newest,),) = (row.values() for row in of_stream.agg(F.max("event_time")).toArrow().to_pylist())
    if newest is None:
        return False
    longest = max(lake.conf.metrics[name].step_seconds for group in groups for name in group.metrics)
    lateness = max(group.lateness_seconds for group in groups)
    event_time = newest + timedelta(seconds=longest + lateness)
    path = lake.table_path(TICKS)
    if rows_of(path, filters=[("stream", "=", stream), ("event_time", ">=", event_time)]):
        return False
    row = {"stream": stream, "event_time": event_time, "ticked_at": now}
    append(path, pa.Table.from_pylist([row], TICKS_SCHEMA))
    return True
