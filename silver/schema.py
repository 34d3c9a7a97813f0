"""Silver tables: the columns that they are made of and checked against."""

import pyarrow as pa

from bronze.schema import INSTANT, declared

KEYS = ["device_id", "metric", "event_time"]
_KEY = (
    ("device_id", pa.string(), "as the source names it"),
    ("metric", pa.string(), "name in conf/metrics.yml"),
    ("event_time", INSTANT, "when it was measured, UTC"),
)
_LINEAGE = (
    ("source", pa.string(), "name of the source in conf/sources.yml"),
    ("ingested_at", INSTANT, "from the event, UTC"),
    ("bronze_batch", pa.int64(), "lineage: identity of the event"),
    ("bronze_row", pa.int64(), "lineage: identity of the event"),
    ("part", pa.int32(), "lineage: which measurement of the event, from 0"),
    ("parts", pa.int32(), "measurements that the event holds, good or bad; null where that is not counted"),
)
READINGS = declared(
    *_KEY,
    ("value", pa.float64(), "finite, in the unit of the metric"),
    ("unit", pa.string(), "unit that the metric declares; null where it declares none"),
    ("aggregation", pa.string(), "aggregation type of the metric; null where the metric is unknown"),
    ("step_seconds", pa.int32(), "coarse grain step of the metric; null where the metric is unknown, or has windows by the calendar"),
    ("zone", pa.string(), "from the event, else from the device registry; null where neither knows"),
    ("groups", pa.list_(pa.string()), "device groups of the device when the event was ingested; may be empty"),
    ("attributes", pa.map_(pa.string(), pa.string()), "texts by name: of the event, then of references; null where neither has any"),
    *_LINEAGE,
)
"""Grain: one accepted measurement. Key: bronze_batch, bronze_row, part; within the lateness also device_id, metric, event_time."""
READING_COLUMNS = READINGS.names

QUARANTINE = declared(
    ("broken_rules", pa.list_(pa.string()), "names of every rule that the row breaks, never empty"),
    ("payload", pa.binary(), "the whole message as it came, byte for byte"),
    ("header", pa.string(), "from the event"),
    ("device_id", pa.string(), "as far as it could be read"),
    ("metric", pa.string(), "as far as it could be read"),
    ("event_time", INSTANT, "as far as it could be read, UTC"),
    ("value", pa.float64(), "as far as it could be read, in the unit of the metric"),
    ("source", pa.string(), "from the event"),
    ("position", pa.string(), "from the event"),
    ("received_at", INSTANT, "from the event, UTC"),
    ("ingested_at", INSTANT, "from the event, UTC"),
    ("bronze_batch", pa.int64(), "lineage: identity of the event"),
    ("bronze_row", pa.int64(), "lineage: identity of the event"),
    ("part", pa.int32(), "lineage: which measurement of the event; 0 where the event could not be read"),
    ("parts", pa.int32(), "measurements that the event holds, good or bad; null where that is not counted"),
)
"""Grain: one measurement (or one unreadable event) that breaks a rule. Key: bronze_batch, bronze_row, part."""

OF_LATE = declared(
    ("cause", pa.string(), "late: behind the watermark when it came; retried: in quarantine until a retry found it good"),
    ("retry", pa.int64(), "number of the retry that re-admitted it from quarantine; null where none did"),
)
LATE = pa.schema([*READINGS, *OF_LATE])
"""Grain: one accepted measurement that no reading has the key of: it came behind the watermark, or was in quarantine.

Key: as of READINGS.
"""

DUPLICATES = declared(
    *_KEY,
    ("value", pa.float64(), "in the unit of the metric; may differ from the kept one"),
    *_LINEAGE,
    ("kept_batch", pa.int64(), "identity of the measurement that was kept, in silver.readings or silver.late"),
    ("kept_row", pa.int64(), "identity of the measurement that was kept"),
    ("kept_part", pa.int32(), "identity of the measurement that was kept"),
    ("is_conflict", pa.bool_(), "whether its value differs from the kept one"),
    ("retry", pa.int64(), "number of the retry that re-admitted it from quarantine; null where none did"),
)
"""Grain: one accepted measurement whose device, metric and event time another one had before. Key: bronze_batch, bronze_row, part."""

DEVICES = declared(
    ("device_id", pa.string(), "as the source names it"),
    ("zone", pa.string(), "where it is; may be null"),
    ("groups", pa.list_(pa.string()), "device groups it belongs to; may be empty"),
    ("label", pa.string(), "for people; may be null"),
    ("is_known", pa.bool_(), "false: from registered_at on the device is unknown again"),
    ("origin", pa.string(), "conf, or the file that was loaded"),
    ("registered_at", INSTANT, "counts for events ingested from this instant on, UTC"),
    ("moved_at", INSTANT, "and of these for what was measured at this instant or later, UTC; null: for all"),
)
"""The device registry. Grain: one version of one device between two moves. Key: device_id, registered_at, moved_at. Append only.

A declaration is all rows of one device and one registered_at. For a measurement counts the newest declaration that has a row for its time.
"""

REFERENCES = declared(
    ("key_of", pa.string(), "column of readings that the key is compared with: device_id or zone"),
    ("key", pa.string(), "as in the user's table"),
    ("attributes", pa.map_(pa.string(), pa.string()), "all that references say of the key, by name; null: from registered_at on nothing"),
    ("registered_at", INSTANT, "counts for events ingested from this instant on, UTC"),
)
"""Attributes that tables of the user give to devices and zones. Grain: one version of one key. Key: key_of, key, registered_at. Append
only."""
SOMETHING_IS_MEASURED = "something_is_measured"
"""The built-in rule that events without measurements break: silver.quarantine has them, and silver.without_measurements shows them."""
