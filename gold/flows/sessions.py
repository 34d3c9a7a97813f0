"""Sessions: one row of each stretch of activity of one device that has ended. Pure."""

import numpy as np
import pyarrow as pa

from gold.flows.slices import Slice, Stepped, codes, fits, instants, micros, without_flow
from gold.flows.spec import Sessions
from gold.instants import SECOND
from gold.schema import SESSIONS

COLUMNS = without_flow(SESSIONS)
_SORT = [("device_id", "ascending"), ("session_start", "ascending"), ("metric", "ascending")]


def sessions(flow: Sessions, this: Slice) -> Stepped:
    """`this.carried`: sessions that are open (COLUMNS). A session ends when no reading came before its `session_end`, as in Spark."""
    gap, readings = flow.gap_seconds * SECOND, this.readings
    if flow.when is not None:
        readings = readings.filter(pa.array(fits(readings, 0)))
    items = pa.concat_tables([this.carried, _of_one(readings, gap)], promote_options="default").sort_by(_SORT)
    if not len(items):
        return Stepped(COLUMNS.empty_table(), COLUMNS.empty_table())
    device, start, end = codes(items["device_id"]), micros(items["session_start"]), micros(items["session_end"])
    begins = np.ones(len(items), bool)
    begins[1:] = (device[1:] != device[:-1]) | (start[1:] >= end[:-1])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(items)) - 1
    joined = items.select(COLUMNS.names).take(first)
    whole = {
        "session_end": instants(end[last]),
        "latest": items["latest"].take(last),
        **{
            name: pa.array(reduce.reduceat(items[name].to_numpy(), first), COLUMNS.field(name).type)
            for name, reduce in (("count", np.add), ("min", np.minimum), ("max", np.maximum), ("sum", np.add))
        },
    }
    for name, column in whole.items():
        joined = joined.set_column(COLUMNS.get_field_index(name), COLUMNS.field(name), column)
    has_ended = pa.array(end[last] <= this.until)
    return Stepped(joined.filter(has_ended), joined.filter(pa.array(end[last] > this.until)))


def _of_one(readings: pa.Table, gap: int) -> pa.Table:
    """Each reading as a session of its own, with its metric, by which readings of one instant are in order."""
    values = readings["value"]
    of_one = {
        "device_id": readings["device_id"],
        "session_start": readings["event_time"],
        "session_end": instants(micros(readings["event_time"]) + gap),
        "count": pa.array(np.ones(len(readings), np.int64)),
        **dict.fromkeys(("min", "max", "sum", "first", "latest"), values),
        **{name: readings[name] for name in ("bronze_batch", "bronze_row", "part")},
    }
    return pa.table([of_one[name] for name in COLUMNS.names], COLUMNS).append_column("metric", readings["metric"])
