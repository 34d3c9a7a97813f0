"""Alerts on anomalies end to end: a fault of an oven becomes a message with its reason, however runs are cut, and after a replay."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gold.alerts.spec import Alert, Signal
from gold.anomalies.spec import Anomalies
from gold.windows.spec import Vector
from orchestration.conf.model import Conf
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.lakes import KITCHEN, conf, differences, event, land, replay, run, table, with_batches_of
from tests.rows import at

START, MINUTES, LEARNING = at("2026-01-05T00:00:00"), 240, 150
HOT = range(200, 204)
"""Minutes of the fault."""
VECTOR = Vector("device", ("temperature", "power"), 0)
ON = Signal("anomaly", group="kitchen", features=VECTOR.features)
ALERTS = {"odd": Alert("odd", ON, "is_anomaly", "score < 1"), "worst": Alert("worst", ON, "score > 3 and temperature > 0", severity="info")}


def plant(folder: Path) -> Conf:
    metrics = {name: Metric(name, Aggregation.AVERAGE, 60) for name in VECTOR.features}
    kitchen = replace(KITCHEN, vector=VECTOR, lateness_seconds=60, anomalies=Anomalies(learning_seconds=60 * LEARNING))
    made = conf(folder, metrics=metrics, groups={"kitchen": kitchen}, alerts=ALERTS)
    return with_batches_of(replace(made, policy=replace(made.policy, lateness_seconds=60)), 1)


def files() -> Iterator[list[str]]:
    """Three files in order of time. The last one has late readings: some amend the fault, some make a vector of their own."""
    chance, lines = random.Random(1), list[str]()
    for minute in range(MINUTES):
        now = START + timedelta(minutes=minute, seconds=30)
        for device in ("oven", "fridge"):
            fault = 60 if device == "oven" and minute in HOT else 0
            if (device, minute) != ("oven", 210):
                lines.append(event(device, "temperature", 200 + chance.gauss(0, 2) + fault, now))
                lines.append(event(device, "power", 5 + chance.gauss(0, 0.2), now))
    late = [event("oven", metric, 900, START + timedelta(minutes=m, seconds=40)) for m in (HOT[0], 210) for metric in VECTOR.features]
    yield lines[:300]
    yield lines[300:820]
    yield [*lines[820:], *late]


def ran(folder: Path, spark: SparkSession, *, has_a_run_each: bool) -> Conf:
    made = plant(folder)
    for number, lines in enumerate(files()):
        land(folder, f"{number}.json", lines)
        if has_a_run_each:
            run(made, spark)
    run(made, spark)
    return made


@pytest.fixture(scope="module")
def cut(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    return ran(tmp_path_factory.mktemp("cut"), spark, has_a_run_each=True)


def changes(made: Conf) -> list[tuple[str, ...]]:
    """Of all alerts, without when they were known."""
    rows = table(made, "gold.alerts")[["alert", "entity", "state", "changed_at", "value", "summary"]]
    return sorted(rows.astype(str).itertuples(index=False, name=None))


def test_a_fault_is_told_with_its_reason_and_verify_agrees(cut: Conf) -> None:
    assert differences(cut) == []
    begins = START + timedelta(minutes=HOT[0] + 1)
    rows = table(cut, "gold.alerts").query("entity == 'oven' and alert == 'worst' and state == 'firing' and changed_at >= @begins")
    fired = rows.sort_values("changed_at").iloc[0]
    assert fired.changed_at == begins
    assert fired.summary.startswith("worst: oven is firing: temperature 26")
    assert "expected " in fired.summary


def test_one_run_and_a_replay_give_the_same_alerts(cut: Conf, tmp_path: Path, spark: SparkSession) -> None:
    at_once = ran(tmp_path, spark, has_a_run_each=False)
    assert changes(at_once) == changes(cut)
    replay(at_once, spark)
    assert changes(at_once) == changes(cut)
    assert differences(at_once) == []
