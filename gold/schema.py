"""Gold tables hold all device groups. Readers also have them one by one: gold.<group>_aggregates, ..._vectors and ..._late are views."""

import pyarrow as pa

from bronze.schema import INSTANT, declared

DEVICE_GROUP = ("device_group", pa.string(), "name in conf/groups.yml")

AGGREGATES = declared(
    DEVICE_GROUP,
    ("device_id", pa.string(), "as the source names it"),
    ("metric", pa.string(), "name in conf/metrics.yml"),
    ("window_start", INSTANT, "first instant of the window, UTC"),
    ("window_end", INSTANT, "first instant after the window, UTC"),
    ("value", pa.float64(), "by the aggregation type of the metric, in its unit (count: a number); null for stddev of one reading"),
    ("count", pa.int64(), "readings in the window"),
    ("min", pa.float64(), "least value"),
    ("max", pa.float64(), "greatest value"),
    ("sum", pa.float64(), "sum of values"),
    ("latest", pa.float64(), "value with the latest event time"),
    ("revision", pa.int32(), "0 as first emitted; higher where late rows were folded in"),
    ("gold_batch", pa.int64(), "micro-batch that emitted the row, or the newest one when it was amended"),
)
"""Grain: one closed window of one metric of one device in a group, per revision. Key: device_group, device_id, metric, window_start and
revision. Append only."""

VECTORS = declared(
    DEVICE_GROUP,
    ("entity", pa.string(), "a device, or the group itself"),
    ("window_start", INSTANT, "first instant of the window, UTC"),
    ("window_end", INSTANT, "first instant after the window, UTC"),
    ("vector", pa.list_(pa.float64()), "values of the features in declared order; null where missing"),
    ("missing", pa.list_(pa.string()), "features without a value"),
    ("filled", pa.list_(pa.string()), "features carried forward from an earlier window"),
    ("revision", pa.int32(), "0 as first emitted; higher where late rows were folded in"),
    ("gold_batch", pa.int64(), "micro-batch that emitted the row, or the newest one when it was amended"),
)
"""Grain: one entity of a group at one closed window, per revision. Key: device_group, entity, window_start, revision. Append only."""

LATE = declared(
    DEVICE_GROUP,
    ("device_id", pa.string(), "as the source names it"),
    ("metric", pa.string(), "name in conf/metrics.yml"),
    ("event_time", INSTANT, "when it was measured, UTC"),
    ("value", pa.float64(), "in the unit of the metric"),
    ("window_end", INSTANT, "first instant after the window, UTC"),
    ("bronze_batch", pa.int64(), "lineage: identity of the event"),
    ("bronze_row", pa.int64(), "lineage: identity of the event"),
    ("part", pa.int32(), "lineage: which measurement of the event, from 0"),
    ("gold_batch", pa.int64(), "micro-batch that found the window closed"),
)
"""Grain: one reading of silver.readings and one window of it that was closed for the group when it came. Append only."""

WINDOW_KEY = ("device_group", "device_id", "metric", "window_end")
"""Of a row of gold.aggregates, beside its revision."""
VECTOR_KEY = ("device_group", "entity", "window_end")
"""Of a row of gold.vectors, beside its revision."""
KINDS = {"aggregates": (AGGREGATES, WINDOW_KEY), "vectors": (VECTORS, VECTOR_KEY), "late": (LATE, ())}
"""The tables of gold by name: their columns, and the key of which readers see the newest revision."""
