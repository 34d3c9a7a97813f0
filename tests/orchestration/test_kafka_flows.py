"""Events of Kafka through all layers, beside files: real streams, a real broker that is killed."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.audit.reconciliation.account import ALARMS, account, by_day, open_tables
from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import KafkaSettings, LandingFolder
from orchestration.engine.lake import Lake
from orchestration.jobs.backfill import carry_out, kafka_source, plan
from orchestration.storage.tables import LakeStore
from tests.broker import Broker, impatient
from tests.lakes import KITCHEN, SHAPE, conf, event, land, latest, minutes, run, run_until, table
from tests.rows import at

START = at("2026-01-05T00:00:00")


def events(device: str, first: int, count: int) -> list[bytes]:
    """A reading a minute."""
    return [event(device, "temperature", n, time).encode() for n, time in enumerate(minutes(START, first + count)) if n >= first]


@pytest.fixture
def made(tmp_path: Path, running: Broker, topic: str) -> Conf:
    """Files and a topic feed it."""
    plant = Source("plant", SHAPE, LandingFolder(tmp_path / "landing", settle_seconds=0.0))
    fleet = Source("fleet", SHAPE, KafkaSettings(running.servers, (topic,)))
    return conf(tmp_path, sources={"plant": plant, "fleet": fleet}, groups={"kitchen": KITCHEN})


def account_of(made: Conf) -> dict[str, tuple[int, ...]]:
    """Events, readings, quarantined, late and duplicates by source; no alarm, and verify finds no difference."""
    days = by_day(account(open_tables(Lake(made))).batches)
    assert [(name, day[name]) for day in days for name in (*ALARMS, "waiting") if day[name]] == []
    assert verify(latest_snapshot(made), made).is_clean
    return {day["source"]: tuple(day[name] for name in ("events", "readings", "quarantined", "late", "duplicates")) for day in days}


def test_messages_of_every_kind_are_accounted_for_beside_those_of_files(
    spark: SparkSession, made: Conf, running: Broker, topic: str
) -> None:
    odd: Sequence[bytes | None] = [None, b"", b"{broken", *events("oven", 3, 1)]
    running.send(topic, [*events("oven", 0, 31), *odd], key=b"\xff", headers=[("trace", b"\x00"), ("trace", None)])
    land(made.folder, "1.json", events("fridge", 0, 31))
    for _ in range(2):  # the second time nothing waits
        run(made, spark)
        assert account_of(made) == {"fleet": (35, 31, 1, 0, 1), "plant": (31, 31, 0, 0, 0)}  # two of the fleet measure nothing
    fleet = table(made, "bronze.events").query("source == 'fleet'").sort_values("bronze_row")
    assert fleet.position.tolist() == [f"{topic}/0/{n}" for n in range(35)]
    assert fleet.payload.tolist()[31:34] == [b"", b"", b"{broken"]
    (header,) = spark.sql(f"select distinct to_json(headers) from delta.`{made.lake}/bronze/events` where source = 'fleet'").collect()
    assert json.loads(header[0]) == [{"key": "trace", "value": "AA=="}, {"key": "trace"}]


def test_a_backfill_is_late_and_folded_in_and_all_is_as_if_it_had_come_at_once(
    spark: SparkSession, made: Conf, running: Broker, topic: str
) -> None:
    running.send(topic, events("oven", 0, 60))
    transport = KafkaSettings(running.servers, (topic,), starting="latest")
    made = replace(made, sources=made.sources | {"fleet": Source("fleet", SHAPE, transport)})
    run(made, spark, ["bronze.events"])
    running.send(topic, events("oven", 60, 120))
    run(made, spark)
    assert account_of(made) == {"fleet": (120, 120, 0, 0, 0)}
    lake = LakeStore(made)
    source = kafka_source(lake, "fleet")
    assert [handed.rows["fleet"] for handed in carry_out(lake, source, plan(lake, source, "earliest", "latest"))] == [60]
    run(made, spark)
    assert account_of(made) == {"fleet": (180, 120, 0, 60, 0)}
    windows = latest(made, "gold.kitchen_aggregates", ["device_id", "metric", "window_end"]).query("metric == 'temperature'")
    assert windows.sort_values("window_end")["count"].tolist()[:12] == [10] * 12


@pytest.mark.slow  # tests/chaos/test_kafka_kills.py kills the broker of a whole run
def test_a_run_goes_on_while_the_broker_is_killed_and_comes_back(
    spark: SparkSession, made: Conf, running: Broker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sent, killed_at, landed = 0, 5, False

    def is_done() -> bool:
        nonlocal sent, landed
        if not running.is_killed and sent < (10 if landed else killed_at):
            running.send(topic, events("oven", sent, 1))
            sent += 1
        rows = table(made, "silver.readings") if (made.lake / "silver/readings/_delta_log").is_dir() else None
        sources = [] if rows is None else rows.source.tolist()
        if not landed and sources.count("fleet") == killed_at:
            running.kill()
            land(made.folder, "1.json", events("fridge", 6, 3))
            landed = True
        elif landed and sources.count("plant") == 3 and running.is_killed:
            running.start()
        return sources.count("fleet") == 10

    with impatient():
        run_until(made, spark, is_done)
    run(made, spark)
    assert account_of(made) == {"fleet": (10, 10, 0, 0, 0), "plant": (3, 3, 0, 0, 0)}
    warnings = [json.loads(line)["warning"] for line in capsys.readouterr().err.splitlines() if '"warning"' in line]
    assert warnings == ["source is down", "source is up again"]
