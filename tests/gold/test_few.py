"""Revisions of a few rows, by Arrow, are those that Spark makes."""

import math
import random
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from gold import few, revisions
from gold.schema import VECTOR_KEY
from tests.rows import at

SCHEMA = pa.schema(
    [
        ("entity", pa.string()),
        ("window_end", pa.timestamp("us", "UTC")),
        ("vector", pa.list_(pa.float64())),
        ("missing", pa.list_(pa.string())),
    ]
)
OF_HISTORY = SCHEMA.append(pa.field("revision", pa.int32()))
CONTENT = ("vector", "missing")


def windows(chance: random.Random, share: float) -> list[dict[str, Any]]:
    """Of three entities at twenty ends."""
    ends: list[datetime] = [at("12:00") + timedelta(minutes=n) for n in range(20)]
    keys = [(entity, end) for entity in ("oven", "fridge", "grill") for end in ends if chance.random() < share]
    values = (1.5, -0.0, 0.0, math.nan, None)
    return [
        {"entity": entity, "window_end": end, "vector": [chance.choice(values)], "missing": chance.choice([[], ["power"]])}
        for entity, end in keys
    ]


@pytest.fixture(params=[(0.5, 0.9), (0.9, 0.3), (0.5, 0.0), (0.0, 0.5)], ids=str)
def both(request: pytest.FixtureRequest) -> tuple[pa.Table, pa.Table]:
    """Rows, and a history in which a key has up to three revisions."""
    chance = random.Random(7)
    of_rows, of_history = request.param
    history = [row | {"revision": n} for row in windows(chance, of_history) for n in range(chance.randint(1, 3))]
    chance.shuffle(history)
    return pa.Table.from_pylist(windows(chance, of_rows), SCHEMA), pa.Table.from_pylist(history, OF_HISTORY)


def sorted_rows(rows: DataFrame | pa.Table) -> list[str]:
    table = rows if isinstance(rows, pa.Table) else rows.toArrow()
    return sorted(map(str, table.to_pylist()))


def test_the_latest_of_a_history(spark: SparkSession, both: tuple[pa.Table, pa.Table]) -> None:
    _, history = both
    assert sorted_rows(few.latest(history, VECTOR_KEY)) == sorted_rows(revisions.latest(spark.createDataFrame(history), VECTOR_KEY))


def test_the_next_revision(spark: SparkSession, both: tuple[pa.Table, pa.Table]) -> None:
    rows, history = (spark.createDataFrame(each) for each in both)
    expected = revisions.next_revision(rows, history, VECTOR_KEY)
    assert sorted_rows(few.next_revision(*both, VECTOR_KEY)) == sorted_rows(expected)


def test_what_has_changed(spark: SparkSession, both: tuple[pa.Table, pa.Table]) -> None:
    rows, history = both
    before = few.latest(history, VECTOR_KEY)
    known = revisions.latest(spark.createDataFrame(history), VECTOR_KEY)
    expected = revisions.changed(spark.createDataFrame(rows), known, VECTOR_KEY, CONTENT)
    assert sorted_rows(few.changed(rows, before, VECTOR_KEY, CONTENT)) == sorted_rows(expected)


def test_lists_are_compared_by_length_and_element() -> None:
    vectors: list[Any] = [None, [], [1.5], [1.5, None], [None, 1.5], [1.5, math.nan], [1.5, 0.0], [2.5, 0.0]]
    pairs = [(one, other) for one in vectors for other in vectors]
    of_side = [[{"entity": str(n), "vector": pair[side], "missing": []} for n, pair in enumerate(pairs)] for side in (0, 1)]
    rows, before = (pa.Table.from_pylist(side, SCHEMA.remove(1)) for side in of_side)
    found = few.changed(rows, before, ["entity"], CONTENT)["entity"].to_pylist()
    assert found == [str(n) for n, (one, other) in enumerate(pairs) if one is not other]


def test_windows_before_the_year_1_are_compared_too() -> None:
    ends = pa.array([-62_135_600_400_000_000], pa.int64()).cast(pa.timestamp("us", "UTC"))
    rows = pa.table([pa.array(["oven"]), ends, pa.array([[1.0]]), pa.array([[]], pa.list_(pa.string()))], schema=SCHEMA)
    assert few.changed(rows, rows, VECTOR_KEY, CONTENT).num_rows == 0
    assert few.changed(rows, rows.slice(1), VECTOR_KEY, CONTENT).num_rows == 1
