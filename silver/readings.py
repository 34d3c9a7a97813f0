"""The silver layer: events to readings and quarantine. Pure: the same functions run in the stream, in a replay and in a batch job.

readings: grain one accepted measurement, typed, in the metric's unit, UTC, enriched, without duplicates within the lateness.
quarantine: grain one measurement (or one unreadable event) that breaks a rule, with its payload and the rules' names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.rule import Rule
from expectations.split import Split, split
from silver.enrich import with_catalogue, with_registry
from silver.instants import to_instant
from silver.parse import measurements
from silver.rules import rules_of
from silver.spec import Policy, Shape

KEYS = ["device_id", "metric", "event_time"]
READING_COLUMNS = [
    *("device_id", "metric", "event_time", "value", "unit", "aggregation", "step_seconds", "zone", "groups"),
    *("source", "ingested_at", "bronze_batch", "bronze_row", "part", "parts"),
]
QUARANTINE_COLUMNS = [
    *("broken_rules", "payload", "header", "device_id", "metric", "event_time", "value"),
    *("source", "position", "received_at", "ingested_at", "bronze_batch", "bronze_row", "part"),
]


@dataclass(frozen=True)
class Declared:
    """What conf says about the silver layer. `shapes` is by name of source."""

    shapes: Mapping[str, Shape]
    policy: Policy
    rules: tuple[Rule, ...] = ()


def readings(events: DataFrame, devices: DataFrame, catalogue: DataFrame, declared: Declared) -> DataFrame:
    """Accepted measurements, the first of each key. In a stream, a row behind the watermark is not among them (it is late).

    Keys are never null here: null keys are equal to dropDuplicates, which would keep one of them and lose the rest.
    """
    accepted = judged(events, devices, catalogue, declared).accepted
    lateness = f"{declared.policy.lateness_seconds} seconds"
    return accepted.select(*READING_COLUMNS).withWatermark("event_time", lateness).dropDuplicates(KEYS)


def quarantine(events: DataFrame, devices: DataFrame, catalogue: DataFrame, declared: Declared) -> DataFrame:
    """Rejected measurements with every broken rule named."""
    return judged(events, devices, catalogue, declared).rejected.select(*QUARANTINE_COLUMNS)


def not_yet_readings(events: DataFrame, accepted: DataFrame) -> DataFrame:
    """Events of one bronze batch without those whose every measurement is among `accepted`, readings of the same batch.

    Only these can hold something for quarantine, and judging is by far the dearest step. Readings that are still to
    come make no difference: a judgement is the same whenever it is made.
    """
    of_one_part = accepted.where(F.col("parts") == 1).select("bronze_row")
    of_many_parts = accepted.where(F.col("parts") > 1).groupBy("bronze_row", "parts").count().where(F.col("count") == F.col("parts"))
    complete = of_one_part.unionByName(of_many_parts.select("bronze_row"))
    return events.join(F.broadcast(complete), on="bronze_row", how="left_anti").select(*events.columns)


def judged(events: DataFrame, devices: DataFrame, catalogue: DataFrame, declared: Declared) -> Split:
    """Every measurement of every event, accepted or rejected. An event of a source that conf no longer names is of neither side."""
    parsed = [_typed(events, shape, sources, declared.policy) for shape, sources in _sources_by_shape(declared.shapes)]
    rows = with_registry(with_catalogue(reduce(DataFrame.unionByName, parsed), catalogue), devices, declared.policy)
    return split(rows, rules_of(declared.policy, declared.rules))


def _sources_by_shape(shapes: Mapping[str, Shape]) -> list[tuple[Shape, list[str]]]:
    """Sources of one shape are read in one scan."""
    by_shape: list[tuple[Shape, list[str]]] = []
    for name, shape in shapes.items():
        same = next((sources for known, sources in by_shape if known == shape), None)
        if same is None:
            by_shape.append((shape, [name]))
        else:
            same.append(name)
    return by_shape


def _typed(events: DataFrame, shape: Shape, sources: list[str], policy: Policy) -> DataFrame:
    of_shape = events.where(F.col("source").isin(sources))
    rows = measurements(of_shape, shape, policy.max_payload_bytes)
    return rows.withColumn("event_time", to_instant(F.col("time_text"), shape.time)).drop("time_text")
