"""Quarantine judged again, as functions: which rows of which events change, and which events are left alone."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from silver.retry import COMPARED, PLACED, judged_otherwise, moved
from tests.rows import at

TYPES = """
  broken_rules ARRAY<STRING>, device_id STRING, metric STRING, event_time TIMESTAMP, value DOUBLE,
  bronze_batch BIGINT, bronze_row BIGINT, part INT, parts INT
"""
BAD = ["value_is_in_range"]


def judged(spark: SparkSession, *rows: tuple[int, int, int, Sequence[str]]) -> DataFrame:
    """Of events of batch 0: row, part, parts, broken rules; each part is another device."""
    cells = [(list(rules), f"d{part}", "m", at("00:00:00"), 1.0, 0, row, part, parts) for row, part, parts, rules in rows]
    return spark.createDataFrame(cells, TYPES).select(*COMPARED)


def changes(measurements: DataFrame, placed: DataFrame, quarantined: DataFrame) -> list[tuple[int, int, list[str]]]:
    found = judged_otherwise(measurements, placed.select(*PLACED), quarantined).collect()
    return sorted((row.bronze_row, row.part, row.broken_rules) for row in found)


def test_events_change_whole_if_any_row_of_theirs_does_and_what_is_placed_stays_where_it_is(spark: SparkSession) -> None:
    quarantined = judged(spark, (0, 0, 1, BAD), (1, 0, 1, BAD), (2, 1, 3, BAD), (2, 2, 3, BAD), (3, 0, 1, BAD))
    now = judged(spark, (0, 0, 1, []), (1, 0, 1, BAD), (2, 0, 3, []), (2, 1, 3, []), (2, 2, 3, BAD), (3, 0, 1, ["other"]))
    assert changes(now, judged(spark, (2, 0, 3, [])), quarantined) == [(0, 0, []), (2, 1, []), (2, 2, BAD), (3, 0, ["other"])]


def test_an_event_that_could_not_be_read_becomes_all_that_it_holds(spark: SparkSession) -> None:
    unreadable = spark.createDataFrame([(["payload_is_readable"], None, None, None, None, 0, 0, 0, None)], TYPES).select(*COMPARED)
    now = judged(spark, (0, 0, 2, []), (0, 1, 2, BAD))
    assert changes(now, judged(spark), unreadable) == [(0, 0, []), (0, 1, BAD)]


def test_an_event_whose_placed_measurements_would_be_others_today_is_left_alone(spark: SparkSession) -> None:
    """By `part` 1 silver holds what is part 0 today, so that part 0 would be there twice and part 1 never."""
    placed = judged(spark, (0, 1, 2, []), (1, 1, 2, []), (2, 0, 2, []))
    now = judged(spark, (0, 0, 1, []), (1, 0, 2, []), (1, 1, 2, BAD), (2, 0, 3, []), (2, 1, 3, []))
    assert sorted(tuple(row) for row in moved(now, placed).collect()) == [(0, 0), (0, 2)]
    quarantined = judged(spark, (0, 0, 2, BAD), (1, 0, 2, BAD), (2, 1, 2, BAD))
    assert changes(now, placed, quarantined) == [(1, 0, [])]
