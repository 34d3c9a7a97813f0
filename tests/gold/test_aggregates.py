"""Aggregates in a batch job: which windows a reading is in, and how the readings of one become a value."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from gold.windows.aggregates import aggregates
from gold.windows.chains import chained
from gold.windows.spec import Group
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.rows import at, measured, rows_of
from tests.window_values import ODD, TYPES, value_of


def windows(spark: SparkSession, rows: list[Any], metrics: list[Metric], groups: list[Group] | None = None) -> list[Any]:
    by_name = {metric.name: metric for metric in metrics}
    kitchen = Group("kitchen", tuple(by_name), 600, "kitchen")
    found = chained(aggregates(measured(spark, rows), groups or [kitchen], by_name), None, by_name)
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
    assert [(row.window_start, row.window_end) for row in found] == [(at("12:00:00"), at("12:10:00")), (at("12:05:00"), at("12:15:00"))]


def test_before_1970_windows_are_cut_at_the_same_multiples(spark: SparkSession) -> None:
    found = windows(spark, [("oven", "t", 1.0, at("1969-12-31T23:59:30"))], [Metric("t", Aggregation.COUNT, 60)])
    assert found[0].window_end == at("1970-01-01T00:00:00")


def test_every_aggregation_type_gives_its_value_beside_the_measures_that_all_have(spark: SparkSession) -> None:
    metrics = [Metric(kind.value, kind, 60, quantile=0.5 if kind is Aggregation.QUANTILE else None) for kind in Aggregation]
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
        "quantile": 2.5,
        "time_weighted_average": round((3 + 1 + 2 + 57 * 6) / 60, 12),  # the last one holds to the end
        "counter_increase": 6.0,  # begins at 1, to 2 and 6
        "circular_mean": 2.999771456,  # a little less than the average of 3
    }
    assert {(row["count"], row.min, row.max, row.sum, row.latest) for row in found.values()} == {(4, 1.0, 6.0, 12.0, 6.0)}


def test_the_standard_deviation_of_one_reading_is_null(spark: SparkSession) -> None:
    (row,) = windows(spark, [("oven", "t", 1.0, at("12:00:00"))], [Metric("t", Aggregation.STDDEV, 60)])
    assert (row.value, row["count"]) == (None, 1)


def values(spark: SparkSession, metric: Metric, *cases: Sequence[float]) -> list[float | None]:
    """Of a window for each of these lists of readings, which are ten seconds apart: each list is of a device of its own."""
    rows = [(f"{at_case:02}", metric.name, value, at(f"12:00:{n}0")) for at_case, case in enumerate(cases) for n, value in enumerate(case)]
    return [row.value for row in windows(spark, rows, [metric])]


def test_a_value_counts_from_its_event_time_to_that_of_the_next_one_also_in_the_window_behind_it(spark: SparkSession) -> None:
    rows = [("oven", "t", 10.0, at("12:00:30")), ("oven", "t", 40.0, at("12:00:50")), ("oven", "t", 7.0, at("12:01:15"))]
    found = windows(spark, rows, [Metric("t", Aggregation.TIME_WEIGHTED_AVERAGE, 60)])
    assert [row.value for row in found] == [(20 * 10.0 + 10 * 40.0) / 30, (15 * 40.0 + 45 * 7.0) / 60]


def test_a_counter_goes_on_from_the_window_before_whatever_lies_between_and_sliding_windows_too(spark: SparkSession) -> None:
    rows = [
        ("oven", "c", value, at(time)) for time, value in (("12:00:10", 5.0), ("12:00:50", 7.0), ("12:03:20", 12.0), ("12:04:10", 15.0))
    ]
    assert [row.value for row in windows(spark, rows, [Metric("c", Aggregation.COUNTER_INCREASE, 60)])] == [2.0, 5.0, 3.0]
    sliding = windows(spark, rows, [Metric("c", Aggregation.COUNTER_INCREASE, 120, slide_seconds=60)])
    assert [row.value for row in sliding] == [2.0, 2.0, 5.0, 8.0, 3.0]


def test_the_mean_of_angles_is_theirs_on_the_circle_and_null_where_they_cancel_out(spark: SparkSession) -> None:
    cases = [(350.0, 10.0), (350.0, 20.0), (-10.0, 710.0), (90.0, 270.0), (0.0, 120.0, 240.0)]
    assert values(spark, Metric("wind", Aggregation.CIRCULAR_MEAN, 60), *cases) == [0.0, 5.0, 350.0, None, None]


def test_every_aggregation_type_is_its_definition_however_readings_are_ordered_and_cut(spark: SparkSession) -> None:
    rows = [
        (device, metric, value, at("12:00:00") + timedelta(seconds=after))
        for device, of in ODD.items()
        for after, value in of
        for metric in TYPES
    ]
    for seed, pieces in ((1, 1), (2, 7)):
        random.Random(seed).shuffle(rows)
        groups = [Group("kitchen", tuple(TYPES), 600, "kitchen")]
        found = rows_of(chained(aggregates(measured(spark, rows).repartition(pieces), groups, TYPES), None, TYPES))
        assert len(found) == len(ODD) * len(TYPES)
        for row in found:
            size = max(360.0, abs(row.min), abs(row.max))
            assert row.value == pytest.approx(value_of(TYPES[row.metric], ODD[row.device_id]), abs=1e-9 * size), row


def test_a_device_counts_in_each_of_its_groups_with_the_metrics_of_that_group(spark: SparkSession) -> None:
    metrics = {"t": Metric("t", Aggregation.SUM, 60), "h": Metric("h", Aggregation.SUM, 60)}
    groups = [Group("hall", ("t",), 60, "all"), Group("kitchen", ("t", "h"), 60, "all"), Group("press_line", ("t", "h"), 60, "all")]
    rows = measured(spark, [("oven", "t", 1.0, at("12:00:00")), ("oven", "h", 2.0, at("12:00:00"))], groups=("kitchen", "hall"))
    found = rows_of(aggregates(rows, groups, metrics).orderBy("device_group", "metric"))
    assert [(row.device_group, row.metric) for row in found] == [("hall", "t"), ("kitchen", "h"), ("kitchen", "t")]
