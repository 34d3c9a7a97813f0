"""Aggregates in a batch job: which windows a reading is in, and how the readings of one become a value."""

from typing import Any

from pyspark.sql import SparkSession

from gold.aggregates import aggregates
from gold.spec import Group
from silver.spec import Aggregation, Metric
from tests.rows import at, measured, rows_of


def windows(spark: SparkSession, rows: list[Any], metrics: list[Metric], groups: list[Group] | None = None) -> list[Any]:
    by_name = {metric.name: metric for metric in metrics}
    kitchen = Group("kitchen", tuple(by_name), 600, "kitchen")
    found = aggregates(measured(spark, rows), groups or [kitchen], by_name)
    return rows_of(found.orderBy("device_group", "device_id", "metric", "window_end"))


def test_a_window_holds_its_first_instant_and_not_its_end(spark: SparkSession) -> None:
    rows = [("oven", "t", 1.0, at("12:00:00")), ("oven", "t", 2.0, at("12:00:59.999999")), ("oven", "t", 4.0, at("12:01:00"))]
    found = windows(spark, rows, [Metric("t", Aggregation.SUM, 60)])
    assert [(row.window_start, row.window_end, row.value) for row in found] == [
        (at("12:00:00"), at("12:01:00"), 3.0),
        (at("12:01:00"), at("12:02:00"), 4.0),
    ]


def test_a_sliding_window_starts_every_slide_and_a_reading_is_in_each_that_spans_it(spark: SparkSession) -> None:
    found = windows(spark, [("oven", "t", 1.0, at("12:07:00"))], [Metric("t", Aggregation.COUNT, 600, slide_seconds=300)])
    assert [(row.window_start, row.window_end) for row in found] == [
        (at("12:00:00"), at("12:10:00")),
        (at("12:05:00"), at("12:15:00")),
    ]


def test_before_1970_windows_are_cut_at_the_same_multiples(spark: SparkSession) -> None:
    found = windows(spark, [("oven", "t", 1.0, at("1969-12-31T23:59:30"))], [Metric("t", Aggregation.COUNT, 60)])
    assert found[0].window_end == at("1970-01-01T00:00:00")


def test_every_aggregation_type_gives_its_value_beside_the_measures_that_all_have(spark: SparkSession) -> None:
    metrics = [Metric(aggregation.value, aggregation, 60) for aggregation in Aggregation]
    rows = [("oven", metric.name, value, at(f"12:00:0{n}")) for metric in metrics for n, value in enumerate((3.0, 1.0, 2.0, 6.0))]
    found = {row.metric: row for row in windows(spark, rows, metrics)}
    assert {name: round(row.value, 12) for name, row in found.items()} == {
        "average": 3.0,
        "latest": 6.0,
        "min": 1.0,
        "max": 6.0,
        "sum": 12.0,
        "count": 4.0,
        "first": 3.0,
        "median": 2.5,
        "stddev": round((14 / 3) ** 0.5, 12),
    }
    assert {(row["count"], row.min, row.max, row.sum, row.latest) for row in found.values()} == {(4, 1.0, 6.0, 12.0, 6.0)}


def test_the_standard_deviation_of_one_reading_is_null(spark: SparkSession) -> None:
    (row,) = windows(spark, [("oven", "t", 1.0, at("12:00:00"))], [Metric("t", Aggregation.STDDEV, 60)])
    assert (row.value, row["count"]) == (None, 1)


def test_a_device_counts_in_each_of_its_groups_with_the_metrics_of_that_group(spark: SparkSession) -> None:
    metrics = {"t": Metric("t", Aggregation.SUM, 60), "h": Metric("h", Aggregation.SUM, 60)}
    groups = [Group("hall", ("t",), 60, "all"), Group("kitchen", ("t", "h"), 60, "all"), Group("press_line", ("t", "h"), 60, "all")]
    rows = measured(spark, [("oven", "t", 1.0, at("12:00:00")), ("oven", "h", 2.0, at("12:00:00"))], groups=("kitchen", "hall"))
    found = rows_of(aggregates(rows, groups, metrics).orderBy("device_group", "metric"))
    assert [(row.device_group, row.metric) for row in found] == [("hall", "t"), ("kitchen", "h"), ("kitchen", "t")]
