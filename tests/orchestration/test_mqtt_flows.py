"""Messages of MQTT through all layers, their topic being device and metric: a real broker, and a collector that is killed."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.conf.load import load
from orchestration.conf.model import Engine
from tests.collectors import collecting, write_conf
from tests.lakes import minutes, run, table
from tests.mosquitto import mosquitto
from tests.orchestration.connectors.collector.test_mqtt import UP, all_of, payloads
from tests.orchestration.test_kafka_flows import account_of
from tests.rows import at
from tests.waiting import until

pytestmark = pytest.mark.mosquitto
START = at("2026-01-05T00:00:00")


def test_what_a_killed_collector_acknowledged_or_not_is_one_reading_a_message(spark: SparkSession, tmp_path: Path) -> None:
    times = [time.isoformat() for time in minutes(START, 40)]
    messages = [("plant/oven/temperature", json.dumps({"value": n, "ts": time}).encode()) for n, time in enumerate(times)]
    odd = [("plant/oven/temperature", b"\xff{"), ("plant/oven/pressure", messages[0][1]), ("plant/stranger", messages[0][1])]
    with mosquitto(tmp_path / "broker") as broker:
        mqtt = f"mqtt: {{broker: '{broker.address}', topics: ['plant/#']}}, device: {{topic: 2}}, metric: {{topic: 3}}"
        conf = write_conf(tmp_path, hall=mqtt)
        with collecting(conf, TIDEMARK_CRASH_AT="events-spooled") as collector:
            collector.says(UP)
            broker.publish(messages)
            assert collector.wait() == -signal.SIGKILL
        broker.publish(odd)
        with collecting(conf) as collector:
            collector.says(UP)
            until(lambda: payloads(tmp_path).keys() == all_of([*messages, *odd]))
    made = replace(load(conf), engine=Engine(shuffle_partitions=2, trigger_seconds=0.2))
    for _ in range(2):  # the second time nothing waits
        run(made, spark)
        events, readings, quarantined, late, duplicates = account_of(made)["hall"]
        assert (readings, quarantined, late) == (40, 3, 0)
        assert events == 43 + duplicates
        assert duplicates > 0
    silver = table(made, "silver.readings")
    assert set(zip(silver.device_id, silver.metric, strict=True)) == {("oven", "temperature")}
    assert sorted(silver.value) == list(range(40))
    assert set(table(made, "bronze.events").position.str.rsplit("/", n=2).str[0]) == {topic for topic, _ in (*messages, *odd)}


def test_bare_values_of_a_broker_are_readings_at_their_arrival(spark: SparkSession, tmp_path: Path) -> None:
    messages = [("plant/oven/temperature", text) for text in (b"68.5", b" 68.7\n", b"1.8 bar", b"unavailable", b"", b"true")]
    with mosquitto(tmp_path / "broker") as broker:
        mqtt = f"mqtt: {{broker: '{broker.address}', topics: ['plant/#']}}, device: {{topic: 2}}, metric: {{topic: 3}}, decode: text"
        conf = write_conf(tmp_path, hall=f"{mqtt}, time: {{arrival: true}}, value: {{field: value}}, not_measured: [unavailable]")
        with collecting(conf) as collector:
            collector.says(UP)
            broker.publish(messages)
            until(lambda: payloads(tmp_path).keys() == all_of(messages))
    made = replace(load(conf), engine=Engine(shuffle_partitions=2, trigger_seconds=0.2))
    run(made, spark)
    silver, events = (table(made, name).set_index("bronze_row") for name in ("silver.readings", "bronze.events"))
    assert sorted(silver.value) == [1.0, 68.5, 68.7]
    assert (silver.event_time == events.received_at[silver.index]).all()
    assert sorted(rules[0] for rules in table(made, "silver.quarantine").broken_rules) == ["something_is_measured"] * 2 + [
        "value_is_a_number"
    ]
    assert [outcome.first for outcome in verify(latest_snapshot(made), made).outcomes if outcome.differences] == []
