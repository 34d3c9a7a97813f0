"""Units, registry, unknown devices and metrics, rules of the user, duplicates."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from expectations.rule import Rule
from silver.config import SilverConfig
from silver.readings import readings
from silver.spec import Policy, Unknown
from tests.rows import INGESTED_AT, LONG, POLICY, at, devices, events, reference, silver, silver_by_both, silver_by_spark


def event(device: str = "oven", metric: str = "temperature", **more: Any) -> str:
    import json

    return json.dumps({"device": device, "metric": metric, "value": 1.0, "ts": "2026-01-01T00:00:01Z"} | more)


def test_values_are_in_the_unit_of_the_metric_whatever_unit_the_device_sends(spark: SparkSession) -> None:
    payloads = [event(value=212, unit="degF"), event("room", value=100, unit="degC"), event("oven", "humidity", unit="%")]
    readings, _ = silver_by_both(spark, events(payloads))
    assert [(round(row.value, 9), row.unit) for row in readings] == [(100.0, "degC"), (100.0, "degC"), (1.0, None)]


def test_a_device_counts_as_it_was_registered_when_the_event_was_ingested(spark: SparkSession) -> None:
    before, after = datetime(2026, 1, 1, 11, tzinfo=UTC), datetime(2026, 1, 1, 13, tzinfo=UTC)
    registry = devices(
        ("moved", "hall-1", ["kitchen"], None, True, "conf", before),
        ("moved", "hall-2", ["press_line"], None, True, "conf", after),  # after INGESTED_AT: not yet
        ("retired", None, ["kitchen"], None, True, "conf", datetime(1970, 1, 1, tzinfo=UTC)),
        ("retired", None, [], None, False, "conf", before),
        ("coming", None, ["kitchen"], None, True, "conf", after),
        ("both", "hall-3", ["kitchen", "press_line"], None, True, "conf", INGESTED_AT),
    )
    rows = events([event(name) for name in ("moved", "retired", "coming", "both")])
    readings, quarantined = silver_by_both(spark, rows, devices=registry)
    assert [(row.device_id, row.zone, row.groups) for row in readings] == [
        ("moved", "hall-1", ["kitchen"]),
        ("both", "hall-3", ["kitchen", "press_line"]),
    ]
    assert [(row.device_id, row.broken_rules) for row in quarantined] == [("retired", ["device_is_known"]), ("coming", ["device_is_known"])]


@pytest.mark.parametrize(("device", "metric"), [("nobody", "temperature"), ("oven", "mood"), ("nobody", "mood")])
def test_unknown_devices_and_metrics_go_to_the_unassigned_group_where_conf_says_so(device: str, metric: str) -> None:
    policy = Policy(600, 300, 1000, unknown_device=Unknown.UNASSIGNED, unknown_metric=Unknown.UNASSIGNED)
    readings, quarantined = silver(events([event(device, metric)]), policy=policy)
    assert quarantined == []
    assert [(row.device_id, row.metric, row.groups) for row in readings] == [(device, metric, ["unassigned"])]


def test_a_large_registry_is_broadcast_too_and_rows_need_no_sort_for_it(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        rows = spark.createDataFrame(events([event()]))
        found = readings(rows, reference(spark), SilverConfig({"plant": LONG}, POLICY))
        plan = found._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert "BroadcastHashJoin" in plan and "SortMergeJoin" not in plan


def test_rules_of_the_user_are_named_beside_the_built_in_ones_and_null_is_broken(spark: SparkSession) -> None:
    rules = (Rule("is_warm", "value > 20"), Rule("has_zone", "zone = 'hall'"), Rule("is_never_known", "cast(null as boolean)"))
    readings, quarantined = silver_by_both(spark, events([event(value=30), event(value=900)]), rules=rules[:2])
    assert [row.value for row in readings] == [30.0]
    assert [row.broken_rules for row in quarantined] == [["value_is_in_range"]]
    assert silver_by_spark(spark, events([event()]), rules=rules)[1][0].broken_rules == ["is_warm", "is_never_known"]


def test_a_duplicate_is_the_same_device_metric_and_time(spark: SparkSession) -> None:
    payloads = [event(), event(), event("room"), event("oven", "humidity"), event(ts="2026-01-01T00:00:01.001Z")]
    readings, quarantined = silver_by_spark(spark, events(payloads))
    assert quarantined == []
    assert sorted((row.device_id, row.metric, row.event_time) for row in readings) == [
        ("oven", "humidity", at("00:00:01")),
        ("oven", "temperature", at("00:00:01")),
        ("oven", "temperature", at("00:00:01.001")),
        ("room", "temperature", at("00:00:01")),
    ]
