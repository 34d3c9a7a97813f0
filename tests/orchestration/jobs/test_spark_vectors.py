"""Vectors that Spark makes of any number of windows, slice by slice, are those that are made of all at once."""

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from gold.windows import vectors
from gold.windows.spec import Group, Vector
from orchestration.engine.windows import Limits, by_entity
from orchestration.jobs import replay
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.rows import at

METRICS = {"t": Metric("t", Aggregation.AVERAGE, 3600), "p": Metric("p", Aggregation.SUM, 7200)}
SCHEMA = pa.schema(
    [
        ("device_group", pa.string()),
        ("device_id", pa.string()),
        ("metric", pa.string()),
        ("window_end", pa.timestamp("us", "UTC")),
        ("value", pa.float64()),
    ]
)


def as_rows(table: pa.Table) -> list[Any]:
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize(
    "vector",
    [Vector("device", ("t", "p"), 86_400 * 2), Vector("device", ("t", "p")), Vector("group", ("a.t", "b.p"), 7200)],
    ids=lambda vector: f"{vector.entity}-{vector.max_fill_seconds}",
)
def test_slices_of_time_and_buckets_of_devices_meet(vector: Vector, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "LIMITS", Limits(rows=10))
    ends = [at("12:00") + timedelta(hours=n) for n in range(100)]
    windows = [("kitchen", device, "t", end, float(n)) for device in "abc" for n, end in enumerate(ends)]
    windows += [("kitchen", device, "p", end, -1.0) for device in "ab" for end in ends[::30]]
    rows = pa.Table.from_pylist([dict(zip(SCHEMA.names, window, strict=True)) for window in windows], SCHEMA)
    group = Group("kitchen", tuple(METRICS), 600, "kitchen", vector)
    ((entity, fill_seconds, groups),) = by_entity([group])
    by_slices = replay.vectors(spark.createDataFrame(rows), entity, fill_seconds, groups, METRICS).toArrow()
    assert as_rows(by_slices) == as_rows(vectors.vectors(rows, [group], METRICS))


def test_no_windows_make_no_vectors(spark: SparkSession) -> None:
    group = Group("kitchen", tuple(METRICS), 600, "kitchen", Vector("device", ("t", "p"), 7200))
    none = spark.createDataFrame(SCHEMA.empty_table())
    assert replay.vectors(none, "device_id", 7200, [group], METRICS).count() == 0
