"""Which measurements of a replayed range are readings."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bronze.schema import INSTANT
from orchestration.engine.session import from_arrow
from silver.judging import PLAIN_INSTANT
from silver.replay import DUPLICATE, LATE, RECORDED, replayed
from silver.schema import KEYS, READINGS
from tests.rows import at

Replayed = Callable[[pa.Table, pa.Table, pa.Table], pa.Table]


@pytest.fixture
def by_spark(spark: SparkSession) -> Replayed:
    return lambda *tables: replayed(*(from_arrow(spark, table) for table in tables)).toArrow()


def good(*rows: tuple[str, int, int]) -> pa.Table:
    """Device, bronze batch and row; all of one metric and instant."""
    cells = [{"device_id": device, "metric": "m", "event_time": at("00:00:00"), "bronze_batch": batch} for device, batch, _ in rows]
    return pa.Table.from_pylist([of | {"bronze_row": row[2], "part": 0} for of, row in zip(cells, rows, strict=True)], READINGS)


def recorded(*rows: tuple[int, int, str]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(RECORDED.names, (batch, row, 0, kind), strict=True)) for batch, row, kind in rows], RECORDED)


def kept(by_spark: Replayed, rows: pa.Table, known: pa.Table, before: pa.Table) -> list[tuple[str, int, int]]:
    of = by_spark(rows, known, before.select(KEYS)).select(["device_id", "bronze_batch", "bronze_row"]).to_pylist()
    return sorted(tuple(row.values()) for row in of)


def test_the_first_batch_that_has_a_key_keeps_it(by_spark: Replayed) -> None:
    assert kept(by_spark, good(("a", 2, 0), ("a", 1, 9), ("b", 2, 1)), recorded(), good()) == [("a", 1, 9), ("b", 2, 1)]


def test_within_a_batch_the_measurement_that_was_kept_then_is_kept_again(by_spark: Replayed) -> None:
    assert kept(by_spark, good(("a", 1, 0), ("a", 1, 5)), recorded((1, 0, DUPLICATE)), good()) == [("a", 1, 5)]


def test_what_was_late_is_no_reading_and_neither_is_a_later_one_of_its_key(by_spark: Replayed) -> None:
    assert kept(by_spark, good(("a", 1, 0), ("a", 2, 0), ("b", 1, 1)), recorded((1, 0, LATE)), good()) == [("b", 1, 1)]


def test_a_key_that_stands_already_gets_no_second_reading(by_spark: Replayed) -> None:
    assert kept(by_spark, good(("a", 2, 0), ("b", 2, 1)), recorded(), good(("a", 1, 0), ("a", 0, 0))) == [("b", 2, 1)]


def test_instants_keep_their_zone_and_years_that_python_has_not(by_spark: Replayed) -> None:
    early = pa.array([-70_000_000_000_000_000], pa.int64()).cast(PLAIN_INSTANT).cast(INSTANT)
    rows = good(("a", 1, 0)).set_column(2, "event_time", early)
    assert by_spark(rows, recorded(), good().select(KEYS))["event_time"].combine_chunks().equals(early)
