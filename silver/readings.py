"""The silver layer: events to readings. Pure: the same functions run in the stream, in a replay and in a batch job.

Grain: one accepted measurement, typed, in the metric's unit, UTC, enriched, without duplicates within the lateness.
What becomes of all other measurements is in silver/account.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.rule import Rule
from expectations.rule_results import passing, with_broken_rules
from silver.enrich import with_catalogue, with_registry
from silver.instants import in_four_digits, to_instant
from silver.parse import measurements
from silver.rules import rules_of
from silver.spec import PayloadFormat, Policy

KEYS = ["device_id", "metric", "event_time"]
READING_COLUMNS = [
    *("device_id", "metric", "event_time", "value", "unit", "aggregation", "step_seconds", "zone", "groups"),
    *("source", "ingested_at", "bronze_batch", "bronze_row", "part", "parts"),
]


@dataclass(frozen=True)
class SilverConfig:
    """What conf says about the silver layer. `shapes` is by name of source."""

    shapes: Mapping[str, PayloadFormat]
    policy: Policy
    rules: tuple[Rule, ...] = ()


def readings(events: DataFrame, devices: DataFrame, catalogue: DataFrame, config: SilverConfig) -> DataFrame:
    """Accepted measurements, the first of each key. In a stream, a row behind the watermark is not among them (it is late).

    Keys are never null here: null keys are equal to dropDuplicates, which would keep one of them and lose the rest.
    """
    accepted = passing(enriched(events, devices, catalogue, config), rules_of(config.policy, config.rules))
    lateness = f"{config.policy.lateness_seconds} seconds"
    return accepted.select(*READING_COLUMNS).withWatermark("event_time", lateness).dropDuplicates(KEYS)


def enriched(events: DataFrame, devices: DataFrame, catalogue: DataFrame, config: SilverConfig) -> DataFrame:
    """Every measurement of every event, with all that rules ask for. An event of a source without a shape has none."""
    parsed = [_typed(events, shape, sources, config.policy) for shape, sources in _sources_by_shape(config.shapes)]
    return with_registry(with_catalogue(reduce(DataFrame.unionByName, parsed), catalogue), devices, config.policy)


def with_rule_results(events: DataFrame, devices: DataFrame, catalogue: DataFrame, config: SilverConfig) -> DataFrame:
    """Every measurement of every event, READING_COLUMNS and `broken_rules`: the names of the rules that it breaks, none for a good one."""
    rows = with_broken_rules(enriched(events, devices, catalogue, config), rules_of(config.policy, config.rules))
    return rows.select("broken_rules", *READING_COLUMNS)


def without_keys_of(late: DataFrame, readings: DataFrame) -> DataFrame:
    """Readings without those whose key a row of silver.late has: that one is kept, so they are its duplicates."""
    return readings.join(late.select(*KEYS), on=KEYS, how="left_anti").select(*readings.columns)


def _sources_by_shape(shapes: Mapping[str, PayloadFormat]) -> list[tuple[PayloadFormat, list[str]]]:
    """Sources of one shape are read in one scan."""
    every = [*shapes.values()]
    distinct = (shape for n, shape in enumerate(every) if shape not in every[:n])  # they hold dicts, so no set takes them
    return [(shape, [name for name, of_source in shapes.items() if of_source == shape]) for shape in distinct]


def _typed(events: DataFrame, shape: PayloadFormat, sources: list[str], policy: Policy) -> DataFrame:
    of_shape = events.where(F.col("source").isin(sources))
    rows = measurements(of_shape, shape, policy.max_payload_bytes)
    timed = rows.withColumn("event_time", to_instant(F.col("time_text"), shape.time)).drop("time_text")
    # In a step of its own, because it asks the instant twice: Spark reads the text once then.
    return timed.withColumn("event_time", in_four_digits(F.col("event_time")))
