"""Payloads to measurements: what each event of a shape says, numbers and instants read, before anything is known about device and metric.

At least one row an event: one that cannot be read has a row without what could not be read.
"""

import pyarrow as pa

from orchestration.verify.at_once import at_once
from orchestration.verify.one_by_one import rows_of
from silver.spec import PayloadFormat

MEASUREMENTS = pa.schema(
    [
        ("event_at", pa.int32()),  # which event of the table, from 0
        ("is_small", pa.bool_()),
        ("is_utf8", pa.bool_()),
        ("is_readable", pa.bool_()),
        ("device_id", pa.string()),
        ("zone_text", pa.string()),
        ("metric", pa.string()),
        ("number", pa.float64()),
        ("unit_text", pa.string()),
        ("event_time", pa.int64()),  # microseconds since 1970, UTC
        ("part", pa.int32()),
        ("parts", pa.int32()),
    ]
)


def measurements(events: pa.Table, shape: PayloadFormat, max_payload_bytes: int) -> pa.Table:
    """Grain: one measurement of one event, in any order. `events` are of this shape, with the columns of bronze.events.

    Schema: MEASUREMENTS.
    """
    many, others = at_once(events, shape, max_payload_bytes)
    rows = rows_of(events.take(others), shape, max_payload_bytes)
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), MEASUREMENTS, strict=True)] if rows else None
    single = pa.table(columns, MEASUREMENTS) if columns else MEASUREMENTS.empty_table()
    of_all = others.take(single["event_at"]).cast(pa.int32())
    return pa.concat_tables([*(pa.table(part, MEASUREMENTS) for part in many), single.set_column(0, MEASUREMENTS.field(0), of_all)])
