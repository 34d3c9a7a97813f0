"""Payloads to measurements, all still text: one row per measurement, at least one row per event.

What could not be read is null and `is_readable` false; nothing is dropped and nothing here can fail a query.
"""

from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from silver.csv_fields import csv_event
from silver.json_fields import JSON_ELEMENT, json_event, json_field
from silver.spec import ELEMENT, Origin, PayloadFormat


def measurements(events: DataFrame, shape: PayloadFormat, max_payload_bytes: int) -> DataFrame:
    """Events of one shape to measurements: beside the columns of events, what names the measurement and `..._text` still to be read.

    A payload longer than `max_payload_bytes` is not read. No payload goes any further, only what rules ask of it: copies of a line
    of 50 MB in every step would fill the memory.
    """
    text = F.col("payload").cast("string")
    kept = [F.col(name) for name in events.columns if name != "payload"]
    of_payload = [F.length("payload").alias("payload_bytes"), F.is_valid_utf8(text).alias("is_utf8")]
    light = events.select(*kept, *of_payload, F.when(F.length("payload") <= max_payload_bytes, text).alias("payload_text"))
    text = F.col("payload_text")
    read = json_event(light, text, shape) if shape.format == "json" else csv_event(light, text, shape)
    elements = _one_row_per_element(read, shape)
    rows = _one_row_per_metric(elements, shape) if shape.metrics else _one_metric_a_row(elements, shape)
    return rows.select(
        *kept,
        *("payload_bytes", "is_utf8"),
        _origin(shape.device, shape).alias("device_id"),
        _origin(shape.zone, shape).alias("zone_text"),
        _named("metric_text").alias("metric"),
        F.col("value_text"),
        _origin(shape.unit, shape).alias("unit_text"),
        _field(shape.time.field, shape).alias("time_text"),
        (F.coalesce("element_at", F.lit(0)) * max(len(shape.metrics), 1) + F.coalesce("metric_at", F.lit(0))).cast("int").alias("part"),
        F.col("parts").cast("int"),
        F.col("is_readable"),
    )


def _one_row_per_element(read: DataFrame, shape: PayloadFormat) -> DataFrame:
    if shape.each is None:
        return read.select("*", F.lit(0).alias("element_at"), F.lit(1).alias("elements"))
    elements = json_field(shape.each)
    return read.select("*", F.posexplode_outer(elements).alias("element_at", JSON_ELEMENT), F.size(elements).alias("elements"))


def _one_metric_a_row(elements: DataFrame, shape: PayloadFormat) -> DataFrame:
    assert shape.value is not None
    return elements.select(
        "*",
        F.lit(0).alias("metric_at"),
        _origin(shape.metric, shape).alias("metric_text"),
        _field(shape.value, shape).alias("value_text"),
        F.col("elements").alias("parts"),
    )


def _one_row_per_metric(elements: DataFrame, shape: PayloadFormat) -> DataFrame:
    """Wide to long; a blank says that nothing was measured. The place in the declaration is the part: a blank does not move it."""
    values = [_named(_field(path, shape)) for path in shape.metrics.values()]
    cells = [
        F.struct(F.lit(name).alias("metric_text"), value.alias("value_text")) for name, value in zip(shape.metrics, values, strict=True)
    ]
    filled = reduce(add, (value.isNotNull().cast("int") for value in values))
    # Wide rows in a list differ in their blanks; how many measurements the whole event holds is then not counted.
    parts = F.lit(None) if shape.each else filled
    rows = elements.select("*", (filled > 0).alias("has_any"), parts.alias("parts"))
    exploded = rows.select("*", F.posexplode_outer(F.when(F.col("has_any"), F.array(*cells))).alias("metric_at", "cell"))
    return exploded.select("*", "cell.*").where(F.col("value_text").isNotNull() | ~F.col("has_any"))


def _origin(origin: Origin | None, shape: PayloadFormat) -> Column:
    if origin is None:
        return F.lit(None).cast("string")
    if origin.constant is not None:
        return F.lit(origin.constant)
    if origin.file_name is not None:
        return _named(F.regexp_extract("position", origin.file_name, 1))
    assert origin.field is not None
    return _named(_field(origin.field, shape))


def _field(path: str, shape: PayloadFormat) -> Column:
    if shape.format == "csv":
        return F.col(f"field.`{path}`")
    return json_field(path.removeprefix(ELEMENT), JSON_ELEMENT) if shape.each and path.startswith(ELEMENT) else json_field(path)


def _named(text: Column | str) -> Column:
    """Without blanks around it; null where nothing is left."""
    trimmed = F.trim(text)
    return F.when(trimmed != "", trimmed)
