"""Gold tables hold all device groups. Readers also have them one by one: gold.<group>_aggregates, ..._vectors and ..._late are views."""

import pyarrow as pa

from bronze.schema import INSTANT, declared

DEVICE_GROUP = ("device_group", pa.string(), "name in conf/groups.yml")
_WINDOW = (("window_start", INSTANT, "first instant of the window, UTC"), ("window_end", INSTANT, "first instant after the window, UTC"))
_VERSION = (
    ("revision", pa.int32(), "0 as the stream emitted it; higher where late rows were folded in"),
    ("gold_batch", pa.int64(), "micro-batch that emitted the row, or the newest one when it was amended"),
)
_OF_READING = (
    ("bronze_batch", pa.int64(), "lineage: identity of the event"),
    ("bronze_row", pa.int64(), "lineage: identity of the event"),
    ("part", pa.int32(), "lineage: which measurement of the event, from 0"),
)

AGGREGATES = declared(
    DEVICE_GROUP,
    ("device_id", pa.string(), "as the source names it"),
    ("metric", pa.string(), "name in conf/metrics.yml"),
    *_WINDOW,
    ("value", pa.float64(), "by the aggregation type of the metric, in its unit (count: a number); null for stddev of one reading"),
    ("count", pa.int64(), "readings in the window; 0 where its value was carried in"),
    ("min", pa.float64(), "least value"),
    ("max", pa.float64(), "greatest value"),
    ("sum", pa.float64(), "sum of values"),
    ("latest", pa.float64(), "value with the latest event time"),
    *_VERSION,
)
"""Grain: one closed window of one metric of one device in a group, per revision. Key: device_group, device_id, metric, window_start and
revision. Append only."""
CARRY = pa.field(
    "carry", pa.list_(pa.float64()), metadata={"comment": "what the next window goes on from, where windows are a chain; in no view"}
)

VECTORS = declared(
    DEVICE_GROUP,
    ("entity", pa.string(), "a device, or the group itself"),
    *_WINDOW,
    ("vector", pa.list_(pa.float64()), "values of the features in declared order; null where missing"),
    ("missing", pa.list_(pa.string()), "features without a value"),
    ("filled", pa.list_(pa.string()), "features carried forward from an earlier window"),
    *_VERSION,
)
"""Grain: one entity of a group at one closed window, per revision. Key: device_group, entity, window_start, revision. Append only."""

LATE = declared(
    DEVICE_GROUP,
    ("device_id", pa.string(), "as the source names it"),
    ("metric", pa.string(), "name in conf/metrics.yml"),
    ("event_time", INSTANT, "when it was measured, UTC"),
    ("value", pa.float64(), "in the unit of the metric"),
    ("window_end", INSTANT, "first instant after the window, UTC"),
    *_OF_READING,
    ("gold_batch", pa.int64(), "micro-batch that found the window closed"),
)
"""Grain: one reading of silver.readings and one window of it that was closed for the group when it came. Append only."""

_NUMBERS = pa.list_(pa.float64())
ANOMALIES = declared(
    DEVICE_GROUP,
    ("entity", pa.string(), "a device, or the group itself"),
    *_WINDOW,
    ("score", pa.float64(), "-log10 of the chance of a vector as odd as this one; null where there is none, see reason"),
    ("threshold", pa.float64(), "an anomaly has at least this score; null without a score"),
    ("is_anomaly", pa.bool_(), "whether the alarm rule alarms: once an event, not in quiet hours"),
    (
        "reason",
        pa.string(),
        "of a score that may be an alarm: its first two features; without a score: learning or too few features; else null",
    ),
    ("expected", _NUMBERS, "what each feature of the vector was expected to be; null where that is not known"),
    ("band", _NUMBERS, "half the width of what is usual around it; null where that is not known"),
    ("share", _NUMBERS, "of each feature in the score, 0 to 1; null where the feature is missing or filled"),
    ("model", pa.string(), "model_id in gold.models; null while there is none"),
    ("shadow_score", pa.float64(), "by the model that runs beside it; null for none"),
    *_VERSION,
)
"""Grain: one vector of a group with `anomalies`, per revision. Key: device_group, entity, window_start, revision. Append only.

Revision 0 is judged with what was known when its window was closed; a higher one folds in late rows. Lists are parallel to `vector`.
"""
BESIDE = {
    "aggregates": (CARRY,),
    "anomalies": declared(
        ("carry", _NUMBERS, "what the next vector of the entity goes on from; in no view"),
        ("shadow_carry", _NUMBERS, "the same of the model that runs beside it; in no view"),
    ),
}
"""Columns that tables of gold have beside those of their schema, by kind."""

WINDOW_KEY = ("device_group", "device_id", "metric", "window_end")
"""The key of a row of gold.aggregates, beside its revision."""
VECTOR_KEY = ("device_group", "entity", "window_end")
"""The key of a row of gold.vectors, beside its revision."""
KINDS = {
    "aggregates": (AGGREGATES, WINDOW_KEY),
    "vectors": (VECTORS, VECTOR_KEY),
    "late": (LATE, ()),
    "anomalies": (ANOMALIES, VECTOR_KEY),
}
"""The tables of gold by name: their columns, and the key of which readers see the newest revision. The last one is there for streams that
have a group with `anomalies`."""
OF_EACH_STREAM = ("aggregates", "vectors", "late")

FLOW = ("flow", pa.string(), "name in conf/flows.yml")
_MEASURES = (
    ("count", pa.int64(), "readings"),
    ("min", pa.float64(), "least value"),
    ("max", pa.float64(), "greatest value"),
    ("sum", pa.float64(), "sum of values"),
    ("first", pa.float64(), "value of the first reading"),
    ("latest", pa.float64(), "value of the last reading"),
)

SESSIONS = declared(
    FLOW,
    ("device_id", pa.string(), "as the source names it"),
    ("session_start", INSTANT, "event time of the first reading, UTC"),
    ("session_end", INSTANT, "event time of the last reading plus the gap, UTC"),
    *_MEASURES,
    *_OF_READING,
)
"""Grain: one session of one device that has ended. Key: flow, device_id, session_start. Lineage is that of the first reading."""

PAIRS = declared(
    FLOW,
    ("key", pa.string(), "the device, the zone or the text of the attribute that both readings have; null where a reading has none"),
    ("left_device", pa.string(), "null where there is no reading of the left side"),
    ("left_time", INSTANT, "its event time, UTC"),
    ("left_value", pa.float64(), "in the unit of the metric"),
    ("right_device", pa.string(), "null where there is no reading of the right side"),
    ("right_time", INSTANT, "its event time, UTC"),
    ("right_value", pa.float64(), "in the unit of the metric"),
    *((f"{side}_{name}", kind, text) for side in ("left", "right") for name, kind, text in _OF_READING),
)
"""Grain: two readings that belong together, or one that found no partner in its range of time. Key: flow and the lineage of both."""

STATES = declared(
    FLOW,
    ("device_id", pa.string(), "as the source names it"),
    ("changed_at", INSTANT, "when the state began, by event time, UTC"),
    ("state", pa.string(), "the new state"),
    ("previous", pa.string(), "the state before"),
    ("seconds", pa.float64(), "how long that lasted; null where nobody knows when it began"),
    ("value", pa.float64(), "of the reading that changed the state; null where time alone did"),
    *_OF_READING,
)
"""Grain: one change of the state of one device. Key: flow, device_id, changed_at, state. Lineage is that of the reading, null where
time alone changed the state."""

MEASURES = declared(
    FLOW,
    ("device_id", pa.string(), "as the source names it"),
    *_WINDOW,
    ("value", pa.float64(), "distance: metres; duty_cycle: share of the known time, 0 to 1; counter: increase in the unit of the metric"),
    ("highest", pa.float64(), "distance: greatest speed in m/s; counter: greatest rise from one reading to the next; duty_cycle: null"),
    ("known_seconds", pa.float64(), "duty_cycle: seconds of the window in which the state is known; else null"),
    ("count", pa.int64(), "distance and counter: readings that ended a step; duty_cycle: readings"),
    ("glitches", pa.int64(), "counter: readings that are noise; distance: positions that are none; else null"),
    ("wraps", pa.int64(), "counter: times it passed `wraps_at`; else null"),
    ("resets", pa.int64(), "counter: times it began anew, as a meter that was swapped; else null"),
)
"""Grain: one closed window of one device in which something is known. Key: flow, device_id, window_start."""
FLOW_KINDS = {
    "sessions": (SESSIONS, ("device_id", "session_start")),
    "pairs": (PAIRS, ("key", "left_time", "right_time")),
    "states": (STATES, ("device_id", "changed_at")),
    "measures": (MEASURES, ("device_id", "window_start")),
}
"""The tables of flows.yml by name: their columns, and those by which a reader finds rows."""
SAMPLES = declared(
    ("entity", pa.string(), "a device, a group or a source"),
    ("at", INSTANT, "event time of a reading, end of a window or an interval, UTC"),
    ("ingested_at", INSTANT, "of a reading: from its event, UTC"),
    ("bronze_batch", pa.int64(), "lineage of a reading: identity of the event"),
    ("bronze_row", pa.int64(), "lineage of a reading: identity of the event"),
    ("part", pa.int32(), "lineage of a reading: which measurement of the event, from 0"),
    ("window_start", INSTANT, "lineage of a window or vector, UTC"),
    ("window_end", INSTANT, "lineage of a window or vector, UTC"),
    ("value", pa.float64(), "what is shown of it; may be null"),
    ("verdict", pa.bool_(), "true: the condition of the alert; false: that of its recovery; null: neither"),
    ("step", pa.int32(), "step of the slice with which it is judged, from 0"),
    ("reason", pa.string(), "of an anomaly, for its summary; else null"),
)
"""Grain: one row of one entity at one instant, as an alert judges it."""

ALERTS = declared(
    ("alert", pa.string(), "name in conf/alerts.yml"),
    ("entity", pa.string(), "a device, a group or a source"),
    ("state", pa.string(), "normal, pending, firing, recovering, no data or flapping"),
    ("previous_state", pa.string(), "what it was until then; firing again where only the severity changes"),
    ("changed_at", INSTANT, "when it changed by event time, UTC"),
    ("since", INSTANT, "when the condition of the state began, UTC: for firing the first sample that was true"),
    ("known_at", INSTANT, "when that was known, UTC: when its batch was ingested, or the clock of the lake rang"),
    ("severity", pa.string(), "as declared, with escalation"),
    ("value", pa.float64(), "of the sample that changed it, or of the last one that did where time alone did; may be null"),
    ("summary", pa.string(), "for people"),
    ("alert_id", pa.string(), "the same from the first change away from normal to the one back to it"),
    *((field.name, field.type, field.metadata[b"comment"].decode()) for field in list(SAMPLES)[3:8]),
    ("is_past", pa.bool_(), "whether newer samples of the entity were judged before: the alarm is over, and changed no present state"),
    ("reason", pa.string(), "of a change that no sample and no clock made: retired, or condition changed; else null"),
)
"""Grain: one change of state of one entity under one alert, in the order of `known_at`. Key: alert, entity, known_at, changed_at, state,
previous_state. Append only."""
