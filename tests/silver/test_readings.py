"""Readings by Spark: of measurements that workers have judged, one of each key is kept; of a range that is replayed, the same one."""

from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

from bronze.schema import INSTANT
from expectations.rule import Rule
from orchestration.engine.session import from_arrow
from silver.enrich import ReferenceData
from silver.judging import PLAIN_INSTANT
from silver.policy import SilverConfig
from silver.readings import DUPLICATE, LATE, RECORDED, readings, replayed
from silver.schema import KEYS, READINGS
from tests.rows import LONG, METRICS, POLICY, at, devices, events, references, rows_of, silver
from tests.silver.test_enrich import event


def by_spark(spark: SparkSession, payloads: list[str], rules: tuple[Rule, ...] = (), **more: Any) -> list[Row]:
    reference_data = ReferenceData(devices(), more.get("references"))
    config = SilverConfig({"plant": LONG}, POLICY, METRICS, rules)
    rows = spark.createDataFrame(events(payloads)).repartition(2)
    return rows_of(readings(rows, partial(ReferenceData, *reference_data), config, POLICY.lateness_seconds).orderBy("bronze_row", "part"))


def test_workers_accept_what_the_account_finds_good(spark: SparkSession) -> None:
    payloads = [event(ts=f"2026-01-01T00:00:{second:02}Z", value=second, unit="degF") for second in range(30)]
    payloads += ["no JSON", "", event("nobody"), event(metric="mood"), event("room", "humidity", value="x"), event("room", "power")]
    rules = (Rule("is_warm", "value is null or metric <> 'temperature' or value > -9.9"),)
    said = references(("device_id", "oven", {"customer": "Ada"}, at("1970-01-01")), ("zone", "hall", {"hall": "1"}, at("1970-01-01")))
    accepted = by_spark(spark, payloads, rules, references=said)
    assert accepted == silver(events(payloads), rules=rules, references=said)[0]
    assert len(accepted) == 16 and {len(row.attributes) for row in accepted} == {1, 2}


def test_a_duplicate_is_the_same_device_metric_and_time(spark: SparkSession) -> None:
    payloads = [event(), event(), event("room"), event("oven", "humidity"), event(ts="2026-01-01T00:00:01.001Z")]
    assert sorted((row.device_id, row.metric, row.event_time) for row in by_spark(spark, payloads)) == [
        ("oven", "humidity", at("00:00:01")),
        ("oven", "temperature", at("00:00:01")),
        ("oven", "temperature", at("00:00:01.001")),
        ("room", "temperature", at("00:00:01")),
    ]


def good(*rows: tuple[str, int, int]) -> pa.Table:
    """Device, bronze batch and row; all of one metric and instant."""
    same = {"metric": "m", "event_time": at("00:00:00"), "part": 0}
    cells = [same | {"device_id": device, "bronze_batch": batch, "bronze_row": row} for device, batch, row in rows]
    return pa.Table.from_pylist(cells, READINGS)


def recorded(*rows: tuple[int, int, str]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(RECORDED.names, (batch, row, 0, kind), strict=True)) for batch, row, kind in rows], RECORDED)


def replay(spark: SparkSession, *tables: pa.Table) -> pa.Table:
    return replayed(*(from_arrow(spark, table) for table in tables)).toArrow()


KEPT: dict[str, tuple[list[tuple[int, int]], list[tuple[int, int, str]], list[tuple[int, int]], tuple[int, int] | None]] = {
    "the first batch that has a key keeps it": ([(2, 0), (1, 9)], [], [], (1, 9)),
    "a key of one measurement has that": ([(2, 1)], [], [], (2, 1)),
    "within a batch the measurement that was kept then is kept again": ([(1, 0), (1, 5)], [(1, 0, DUPLICATE)], [], (1, 5)),
    "a late measurement is no reading and neither is a later one of its key": ([(1, 2), (2, 2)], [(1, 2, LATE)], [], None),
    "a key that stands already gets no second reading": ([(2, 3)], [], [(1, 3), (0, 3)], None),
}
"""Batch and row of the good measurements of a key, of those that were recorded, and of those before the range; and the one that is kept."""


@pytest.fixture(scope="module")
def kept(spark: SparkSession) -> dict[str, tuple[int, int]]:
    """All of KEPT by one query; each is of a device of its name."""
    rows = good(*((name, *row) for name, (of_range, _, _, _) in KEPT.items() for row in of_range))
    before = good(*((name, *row) for name, (_, _, earlier, _) in KEPT.items() for row in earlier))
    recorded_rows = recorded(*(row for _, kinds, _, _ in KEPT.values() for row in kinds))
    replayed_rows = replay(spark, rows, recorded_rows, before.select(KEYS)).to_pylist()
    assert len(replayed_rows) == len({row["device_id"] for row in replayed_rows})
    return {row["device_id"]: (row["bronze_batch"], row["bronze_row"]) for row in replayed_rows}


@pytest.mark.parametrize("name", KEPT)
def test_of_the_measurements_of_a_replayed_range_one_of_each_key_is_a_reading(name: str, kept: dict[str, tuple[int, int]]) -> None:
    assert kept.get(name) == KEPT[name][3]


def test_instants_keep_their_zone_and_years_that_python_has_not(spark: SparkSession) -> None:
    early = pa.array([-70_000_000_000_000_000], pa.int64()).cast(PLAIN_INSTANT).cast(INSTANT)
    rows = good(("a", 1, 0)).set_column(2, "event_time", early)
    assert replay(spark, rows, recorded(), good().select(KEYS))["event_time"].combine_chunks().equals(early)
