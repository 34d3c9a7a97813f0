"""Vectors: declared order, forward fill, missing features, windows of different steps."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from gold.schema import AGGREGATES
from gold.spec import Group, Vector
from gold.vectors import vectors
from silver.spec import Aggregation, Metric
from tests.rows import at, rows_of

METRICS = {"t": Metric("t", Aggregation.AVERAGE, 600), "p": Metric("p", Aggregation.SUM, 3600), "h": Metric("h", Aggregation.STDDEV, 600)}


def made(spark: SparkSession, windows: Sequence[tuple[str, str, datetime, float | None]], vector: Vector) -> list[tuple[Any, ...]]:
    rows = [(device, metric, end, end, value, 1, value, value, value, value, 0, 0) for device, metric, end, value in windows]
    group = Group("kitchen", tuple(METRICS), 600, "kitchen", vector)
    found = rows_of(vectors(spark.createDataFrame(rows, AGGREGATES), group, vector, METRICS).orderBy("entity", "window_end"))
    return [(row.entity, row.window_end, row.vector, row.missing, row.filled) for row in found]


def test_features_stand_in_declared_order_and_a_missing_one_is_null_and_named(spark: SparkSession) -> None:
    windows = [("oven", "t", at("12:00"), 1.0), ("oven", "p", at("12:00"), 2.0)]
    assert made(spark, windows, Vector("device", ("p", "h", "t"))) == [("oven", at("12:00"), [2.0, None, 1.0], ["h"], [])]


def test_a_feature_is_carried_forward_for_max_fill_seconds_and_no_longer(spark: SparkSession) -> None:
    windows = [("oven", "p", at("12:00"), 5.0), *(("oven", "t", at(f"12:{minute}"), 1.0) for minute in ("00", "10", "20", "30"))]
    found = made(spark, windows, Vector("device", ("t", "p"), max_fill_seconds=1200))
    assert [(end, vector, missing, filled) for _, end, vector, missing, filled in found] == [
        (at("12:00"), [1.0, 5.0], [], []),
        (at("12:10"), [1.0, 5.0], [], ["p"]),
        (at("12:20"), [1.0, 5.0], [], ["p"]),
        (at("12:30"), [1.0, None], ["p"], []),
    ]


def test_a_null_value_counts_as_none_and_is_filled(spark: SparkSession) -> None:
    windows = [("oven", "h", at("12:00"), 0.5), ("oven", "h", at("12:10"), None)]
    found = made(spark, windows, Vector("device", ("h",), max_fill_seconds=600))
    assert [(vector, filled) for _, _, vector, _, filled in found] == [([0.5], []), ([0.5], ["h"])]


def test_another_device_neither_fills_nor_shares_a_vector(spark: SparkSession) -> None:
    windows = [("oven", "t", at("12:00"), 1.0), ("fridge", "t", at("12:10"), 2.0)]
    assert made(spark, windows, Vector("device", ("t",), max_fill_seconds=600)) == [
        ("fridge", at("12:10"), [2.0], [], []),
        ("oven", at("12:00"), [1.0], [], []),
    ]


def test_a_group_has_one_vector_with_features_of_named_devices(spark: SparkSession) -> None:
    windows = [("oven", "t", at("12:00"), 1.0), ("fri.dge", "t", at("12:00"), 2.0), ("other", "t", at("12:00"), 9.0)]
    found = made(spark, windows, Vector("group", ("fri.dge.t", "oven.t", "oven.p")))
    assert found == [("kitchen", at("12:00"), [2.0, 1.0, None], ["oven.p"], [])]
