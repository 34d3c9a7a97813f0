"""The silver layer's account: every measurement of a bronze batch that is not among the readings is in quarantine, late or a duplicate.

By identity (bronze_batch, bronze_row, part), never by Spark's count of dropped rows, which says 1 for 10.
"""

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from expectations.rule_results import with_broken_rules
from silver.readings import KEYS, READING_COLUMNS, Declared, enriched
from silver.rules import rules_of

IDENTITY = ["bronze_batch", "bronze_row", "part"]
KEPT = ["kept_batch", "kept_row", "kept_part"]
OF_EVENT = ["bronze_batch", "bronze_row"]
JUDGED = ["broken_rules", "device_id", "metric", "event_time", "value", "source", "ingested_at", *IDENTITY, "parts"]
DUPLICATE_COLUMNS = [*KEYS, "value", "source", "ingested_at", *IDENTITY, "parts", *KEPT]


def keys_not_yet_readings(events: pa.Table, accepted: pa.Table) -> pa.Table:
    """Rows of OF_EVENT: those of `events` without those whose every measurement is among `accepted`, readings of the same bronze batches.

    Judging is by far the dearest step, and nearly all events need none. Of Arrow, whose join takes a tenth of the time of Spark's.
    """
    return events.select(OF_EVENT).join(complete(accepted), keys=OF_EVENT, join_type="left anti")


def complete(accepted: pa.Table) -> pa.Table:
    """Rows of OF_EVENT: events whose every measurement is among `accepted`, all readings of their bronze batches."""
    of_one_part = accepted.filter(pc.field("parts") == 1)
    counts = accepted.filter(pc.field("parts") > 1).group_by([*OF_EVENT, "parts"]).aggregate([([], "count_all")])
    of_many_parts = counts.filter(pc.field("count_all") == pc.field("parts"))
    return pa.concat_tables([of_one_part.select(OF_EVENT), of_many_parts.select(OF_EVENT)])


def of_keys(events: DataFrame, keys: DataFrame) -> DataFrame:
    """Events of these keys, rows of OF_EVENT; they fit in memory."""
    return events.join(F.broadcast(keys), on=OF_EVENT, how="left_semi").select(*events.columns)


def judged(events: DataFrame, devices: DataFrame, catalogue: DataFrame, declared: Declared) -> DataFrame:
    """Every measurement of every event with `broken_rules`, empty for a good one."""
    rows = enriched(events, devices, catalogue, declared)
    return with_broken_rules(rows, rules_of(declared.policy, declared.rules)).select(*dict.fromkeys([*JUDGED, *READING_COLUMNS]))


def quarantine(measurements: DataFrame, events: DataFrame) -> DataFrame:
    """Of judged ones those that break a rule; grain one measurement, or one unreadable event, with its payload and the rules' names."""
    of_event = events.select(*OF_EVENT, "payload", "header", "position", "received_at")
    return broken(measurements).select(*JUDGED).join(of_event, on=OF_EVENT)


def broken(measurements: DataFrame) -> DataFrame:
    """Of judged ones those that break a rule."""
    return measurements.where(F.size("broken_rules") > 0)


def not_among(measurements: DataFrame, accepted: DataFrame) -> DataFrame:
    """Judged ones without `accepted`, readings of the same batch: a reading stays one, also under other rules than when it came."""
    # An event of one part that was judged at all is not among the readings.
    of_many_parts = accepted.where(F.coalesce("parts", F.lit(0)) != 1).select(*IDENTITY)
    return measurements.join(of_many_parts, on=IDENTITY, how="left_anti").select(*measurements.columns)


def as_decided(measurements: DataFrame, quarantined: DataFrame) -> DataFrame:
    """Judged ones that are no readings with the broken rules that `quarantined`, rows of silver.quarantine, gives them; else with none.

    For an account that was begun and not ended: its quarantine was written first, and rules may have changed since.
    """
    decided = quarantined.select(*IDENTITY, F.col("broken_rules").alias("decided"))
    broken_rules = F.coalesce("decided", F.array().cast("array<string>")).alias("broken_rules")
    columns = [broken_rules if name == "broken_rules" else F.col(name) for name in measurements.columns]
    return measurements.join(decided, on=IDENTITY, how="left").select(*columns)


def turned_away(measurements: DataFrame) -> DataFrame:
    """Of judged ones that are no readings those that are good: late, or duplicates."""
    return measurements.where(F.size("broken_rules") == 0).select(*READING_COLUMNS)


def with_kept(rows: DataFrame, kept: DataFrame) -> DataFrame:
    """Rows of one batch that were turned away, with the identity of the measurement that was kept of their key.

    `kept`: readings and late rows of this batch and those before. Where it has none of the key, the first of `rows` is kept; it is late.
    """
    # Few are turned away: without this join Spark gathers all of `kept` in one place, strings and all.
    of_these_keys = kept.join(rows.select(*KEYS), on=KEYS, how="left_semi")
    before = of_these_keys.select(*KEYS, *(F.col(name).alias(f"{name}_before") for name in IDENTITY))
    identity = F.struct(*IDENTITY)
    first = F.min(identity).over(Window.partitionBy(*KEYS))
    found = rows.join(before, on=KEYS, how="left").select(
        *rows.columns,
        F.when(F.col("part_before").isNotNull(), F.struct(*(F.col(f"{name}_before").alias(name) for name in IDENTITY)))
        .otherwise(first)
        .alias("kept"),
    )
    return found.select(*rows.columns, *(F.col(f"kept.{name}").alias(alias) for name, alias in zip(IDENTITY, KEPT, strict=True)))


def late(rows: DataFrame, retry: int | None = None) -> DataFrame:
    """Of rows with the kept one those that are it: nobody else has their key. `retry`: of that number, from quarantine."""
    cause = F.lit("late" if retry is None else "retried").alias("cause")
    return rows.where(_is_kept()).select(*READING_COLUMNS, cause, _of_retry(retry))


def duplicates(rows: DataFrame, retry: int | None = None) -> DataFrame:
    """Of rows with the kept one all the others."""
    return rows.where(~_is_kept()).select(*DUPLICATE_COLUMNS, _of_retry(retry))


def _of_retry(number: int | None) -> Column:
    return F.lit(number).cast("bigint").alias("retry")


def _is_kept() -> Column:
    return F.struct(*IDENTITY) == F.struct(*(F.col(alias).alias(name) for name, alias in zip(IDENTITY, KEPT, strict=True)))
