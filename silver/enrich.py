"""Enrichment: what the metric catalogue and the device registry know about a measurement."""

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from silver.instants import to_number
from silver.spec import UNASSIGNED_GROUP, Metric, Policy, Unknown

CATALOGUE = pa.schema(
    [
        *(("metric", pa.string()), ("unit", pa.string()), ("aggregation", pa.string()), ("step_seconds", pa.int32())),
        *(("minimum", pa.float64()), ("maximum", pa.float64())),
        ("conversions", pa.map_(pa.string(), pa.struct([("multiply", pa.float64()), ("add", pa.float64())]))),
    ]
)
"""Grain: one metric. `conversions` holds the units that a source may name beside the metric's own."""


def catalogue(metrics: Mapping[str, Metric]) -> pa.Table:
    """Rows of CATALOGUE. Of Arrow, as Spark keeps those in the plan; rows of Python it asks of a Python process, at every batch."""
    rows = [
        vars(metric) | {"metric": metric.name, "conversions": {unit: vars(factors) for unit, factors in metric.conversions.items()}}
        for metric in metrics.values()
    ]
    return pa.Table.from_pylist(rows, CATALOGUE)


def with_catalogue(measurements: DataFrame, catalogue: DataFrame) -> DataFrame:
    """Adds the catalogue's columns and `value`, in the unit of the metric; a text that is no number is null.

    A measurement without a unit is taken to be in the metric's own; a metric without a unit takes any.
    """
    rows = measurements.join(F.broadcast(catalogue), on="metric", how="left").withColumn("number", _number(F.col("value_text")))
    own = F.col("unit_text").isNull() | F.col("unit").isNull() | (F.col("unit_text") == F.col("unit"))
    conversion = F.try_element_at("conversions", F.col("unit_text"))
    return rows.select(
        *measurements.columns,
        *("unit", "aggregation", "step_seconds", "minimum", "maximum"),
        F.col("aggregation").isNotNull().alias("is_metric_known"),
        (own | conversion.isNotNull()).alias("is_unit_known"),
        F.when(own, F.col("number")).otherwise(F.col("number") * conversion["multiply"] + conversion["add"]).alias("value"),
    )


def with_registry(measurements: DataFrame, devices: DataFrame, policy: Policy) -> DataFrame:
    """Adds `zone`, `groups` and `is_device_known`, by the registry as it was when the event was ingested.

    So the answer is the same whoever asks and whenever: the live streams, a replay, a check.
    """
    versions = _versions(devices)
    of_device = (
        (measurements.device_id == versions.registered_id)
        & (versions.registered_at <= measurements.ingested_at)
        & (versions.replaced_at.isNull() | (measurements.ingested_at < versions.replaced_at))
    )
    is_known = F.coalesce("is_known", F.lit(False))
    is_assigned = is_known if policy.unknown_metric is Unknown.QUARANTINE else is_known & F.col("is_metric_known")
    return measurements.join(F.broadcast(versions), on=of_device, how="left").select(
        *measurements.columns,
        F.coalesce("zone_text", F.when(is_known, F.col("registered_zone"))).alias("zone"),
        F.when(is_assigned, F.col("registered_groups")).otherwise(F.array(F.lit(UNASSIGNED_GROUP))).alias("groups"),
        is_known.alias("is_device_known"),
    )


def _versions(devices: DataFrame) -> DataFrame:
    """Each version of a device with the instant at which the next one replaces it."""
    # The registry is small: one partition needs no shuffle.
    following = F.lead("registered_at").over(Window.partitionBy("device_id").orderBy("registered_at"))
    return devices.coalesce(1).select(
        F.col("device_id").alias("registered_id"),
        F.col("zone").alias("registered_zone"),
        F.col("groups").alias("registered_groups"),
        "is_known",
        "registered_at",
        following.alias("replaced_at"),
    )


def _number(text: Column) -> Column:
    """Also true and false, which many devices send for switches: 1 and 0."""
    word = F.lower(text)
    return F.coalesce(to_number(text), F.when(word == "true", F.lit(1.0)).when(word == "false", F.lit(0.0)))
