"""What Spark adds to measurements that workers have judged: nothing but that of each key one is kept."""

import json
from functools import partial
from typing import Any

from pyspark.sql import Row, SparkSession

from expectations.rule import Rule
from silver.config import SilverConfig
from silver.enrich import ReferenceData
from silver.readings import readings
from tests.rows import LONG, METRICS, POLICY, at, devices, events, references, rows_of, silver


def event(device: str = "oven", metric: str = "temperature", **more: Any) -> str:
    return json.dumps({"device": device, "metric": metric, "value": 1.0, "ts": "2026-01-01T00:00:01Z"} | more)


def by_spark(spark: SparkSession, payloads: list[str], rules: tuple[Rule, ...] = (), **more: Any) -> list[Row]:
    reference_data = ReferenceData(devices(), more.get("references"))
    config = SilverConfig({"plant": LONG}, POLICY, METRICS, rules)
    rows = spark.createDataFrame(events(payloads)).repartition(2)
    return rows_of(readings(rows, partial(ReferenceData, *reference_data), config).orderBy("bronze_row", "part"))


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
