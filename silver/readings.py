"""The silver layer: events to readings. Pure: the same functions run in the stream, in a replay and in a batch job.

Grain: one accepted measurement, typed, in the metric's unit, UTC, enriched, without duplicates within the lateness.
A measurement is accepted when every rule holds for it; a rule that is null counts as broken. What becomes of all others is in
silver/account.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import and_
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from expectations.rule import Rule
from silver.config import SilverConfig
from silver.enrich import REFERENCE_VERSIONS, VALUED, VERSIONS, described, referred
from silver.measurements import MEASURED, OF_EVENT, measured
from silver.rules import rules_of
from silver.schema import KEYS, READING_COLUMNS
from silver.spec import Policy

NARROW = [*KEYS, "value", "zone_text", "attributes", "source", "ingested_at", "bronze_batch", "bronze_row", "part", "parts"]
"""All of a reading that neither the catalogue nor the registry knows."""


class Reference(NamedTuple):
    """The registry (silver.devices), and the catalogue: METRICS and CONVERSIONS of silver/enrich.py.

    `references`: silver.references, by what its keys are of: each costs a join, and none where the lake has none.
    """

    devices: DataFrame
    metrics: DataFrame
    conversions: DataFrame
    references: Mapping[str, DataFrame] = MappingProxyType({})


def readings(events: DataFrame, reference: Reference, config: SilverConfig) -> DataFrame:
    """Accepted measurements, the first of each key. In a stream, a row behind the watermark is not among them (it is late).

    Keys are never null here: null keys are equal to dropDuplicates, which would keep one of them and lose the rest. Rows are described a
    second time behind it, as its state and its shuffle are a third cheaper with narrow rows.
    """
    rows = accepted(events, reference, config).withWatermark("event_time", f"{config.policy.lateness_seconds} seconds")
    return as_readings(rows.dropDuplicates(KEYS), reference, config.policy)


def accepted(events: DataFrame, reference: Reference, config: SilverConfig) -> DataFrame:
    """Every measurement that breaks no rule, NARROW; `as_readings` adds the rest."""
    return passing(enriched(events, reference, config), rules_of(config.policy, config.rules)).select(*NARROW)


def as_readings(rows: DataFrame, reference: Reference, policy: Policy) -> DataFrame:
    """READING_COLUMNS of rows of NARROW."""
    return _referred(_described(rows, reference, policy).select(*READING_COLUMNS), reference)


def enriched(events: DataFrame, reference: Reference, config: SilverConfig) -> DataFrame:
    """Every measurement of every event, with all that rules ask for. An event of a source without a shape has none."""
    # What no format reads goes to no worker (measured: 0.3 us an event for both).
    unread = {"header": not any(shape.format == "csv" for shape in config.shapes.values())}
    unread |= {"position": not any(shape.is_read_by_position for shape in config.shapes.values())}
    read = [F.lit(None).cast("string").alias(name) if is_unread else name for name, is_unread in unread.items()]
    rows = events.select(*OF_EVENT, "payload", *read).mapInArrow(partial(_measured, config=config), from_arrow_schema(MEASURED))
    metrics, conversions = (table.hint("broadcast") for table in (reference.metrics, reference.conversions))
    valued = rows.sparkSession.sql(VALUED, measurements=rows, metrics=metrics, conversions=conversions)
    return _described(valued, reference, config.policy)


def with_rule_results(events: DataFrame, reference: Reference, config: SilverConfig) -> DataFrame:
    """Every measurement of every event, READING_COLUMNS and `broken_rules`: the names of the rules that it breaks, none for a good one."""
    rows = with_broken_rules(enriched(events, reference, config), rules_of(config.policy, config.rules))
    return _referred(rows.select("broken_rules", *READING_COLUMNS), reference)


def without_keys_of(late: DataFrame, readings: DataFrame) -> DataFrame:
    """Readings without those whose key a row of silver.late has: that one is kept, so they are its duplicates."""
    return readings.join(late.select(*KEYS), on=KEYS, how="left_anti").select(*readings.columns)


def passing(rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Rows for which every rule holds; a rule that is null for a row counts as broken."""
    return rows.where(reduce(and_, map(_holds, rules)))


def with_broken_rules(rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """All rows, with the names of the rules that each breaks; empty where `passing` lets it through."""
    broken = F.array_compact(F.array(*(F.when(~_holds(rule), F.lit(rule.name)) for rule in rules)))
    return rows.withColumn("broken_rules", broken)


def _holds(rule: Rule) -> Column:
    """True or false for every row, never null."""
    return F.coalesce(F.expr(rule.holds), F.lit(False))


def _measured(batches: Iterator[pa.RecordBatch], config: SilverConfig) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for piece in measured(pa.Table.from_batches([batch]), config):
            yield from piece.to_batches()


def _described(rows: DataFrame, reference: Reference, policy: Policy) -> DataFrame:
    session = rows.sparkSession
    # The registry is small: one partition needs no shuffle, and rows none for the join.
    versions = session.sql(VERSIONS, devices=reference.devices.coalesce(1)).hint("broadcast")
    metrics = reference.metrics.hint("broadcast")
    return session.sql(described(policy), measurements=rows, metrics=metrics, versions=versions)


def _referred(rows: DataFrame, reference: Reference) -> DataFrame:
    """Behind the rules, which see what the event says alone, and behind the state of the stream."""
    session = rows.sparkSession
    for key_of, references in reference.references.items():
        versions = session.sql(REFERENCE_VERSIONS, references=references.coalesce(1)).hint("broadcast")
        rows = session.sql(referred(rows.columns, key_of), readings=rows, versions=versions)
    return rows
