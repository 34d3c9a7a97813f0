"""Vectors of a few windows, by Arrow, are those that Spark makes."""

import math
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from gold import few_vectors
from gold.spec import Group, Vector
from gold.vectors import vectors
from silver.spec import Aggregation, Metric
from tests.rows import at

METRICS = {"t": Metric("t", Aggregation.AVERAGE, 600), "p": Metric("p", Aggregation.SUM, 3600), "h": Metric("h", Aggregation.STDDEV, 600)}
SCHEMA = pa.schema(
    [("device_id", pa.string()), ("metric", pa.string()), ("window_end", pa.timestamp("us", "UTC")), ("value", pa.float64())]
)
ENDS: list[datetime] = [at("12:00") + timedelta(minutes=10 * n) for n in range(8)]
WINDOWS = st.lists(
    st.tuples(st.sampled_from(["a", "b.t", "c"]), st.sampled_from(["t", "p", "h", "x"]), st.sampled_from(ENDS)), unique=True, max_size=40
)
VALUES = st.lists(st.sampled_from([1.5, -0.0, 2.5, math.nan, math.inf, None]), min_size=40, max_size=40)
VECTORS = [
    Vector("device", ("t", "p", "h"), 1200),
    Vector("device", ("h",)),
    Vector("group", ("b.t.t", "a.p", "c.h", "a.t"), 1800),
]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector.entity}-{vector.max_fill_seconds}")
@settings(max_examples=12, deadline=None, suppress_health_check=[*HealthCheck])
@given(windows=WINDOWS, values=VALUES)
def test_vectors(spark: SparkSession, vector: Vector, windows: list[tuple[str, str, datetime]], values: list[float | None]) -> None:
    rows = [(*window, value) for window, value in zip(windows, values, strict=False)]
    aggregates = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    group = Group("kitchen", tuple(METRICS), 600, "kitchen", vector)
    by_spark = vectors(spark.createDataFrame(aggregates), group, vector, METRICS).toArrow()
    found = few_vectors.vectors(aggregates, group, vector, METRICS)
    assert told(found) == told(by_spark)


def test_the_size_of_vectors_counts_every_feature_of_each() -> None:
    windows = pa.table({"device_id": ["a", "a", "b"], "window_end": pa.array([ENDS[0], ENDS[0], ENDS[0]], pa.timestamp("us", "UTC"))})
    of_device, _, of_group = VECTORS
    assert few_vectors.size(windows, Group("kitchen", tuple(METRICS), 600, "kitchen"), of_device) == 2 * (3 * few_vectors.CELL_BYTES + 3)
    assert few_vectors.size(windows, Group("kitchen", tuple(METRICS), 600, "kitchen"), of_group) == 4 * few_vectors.CELL_BYTES + 14


def told(rows: pa.Table) -> list[Any]:
    return sorted(map(repr, rows.to_pylist()))
