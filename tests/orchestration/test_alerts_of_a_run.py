"""Alerts of whole runs: opening hours, clocks that change, a site that is hours behind, prices of tomorrow, an alert that is edited."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gold.alerts.spec import Alert, Hours, NoData, Signal
from gold.windows.spec import Group
from orchestration.conf.model import Conf, Device
from orchestration.engine.lake import Lake
from orchestration.jobs.gold.exact_alerts import tick_if_due
from orchestration.jobs.gold.flows import follow_all
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.lakes import conf, copy_tree, differences, event, land, replay, run, table
from tests.rows import at

BERLIN = "Europe/Berlin"
OPEN, NIGHT = Hours(BERLIN, tuple(range(7)), 360, 420), Hours(BERLIN, tuple(range(7)), 90, 150)
SITE = Signal("window", "site_temp", "all")
OVEN_HOT = Alert("oven_hot", Signal("reading", "oven_temp"), "value > 280", "value < 260")
ALERTS = (
    Alert("shop_silent", Signal("count", "ping", "shop", every_seconds=300), "readings = 0", hours=OPEN),
    Alert("shop_no_data", Signal("reading", "ping"), "value < 0", no_data=NoData(600, "fire"), hours=OPEN),
    Alert("night_door", Signal("reading", "door"), "value = 1", hours=NIGHT),
    Alert("site_hot", Signal("reading", "site_temp"), "value > 80"),
    Alert("site_hot_window", SITE, "value > 80"),
    OVEN_HOT,
)
DEVICES = {"till-1": ("shop",), "door-1": (), "a-1": ("all",), "b-1": ("all",), "oven-3": (), "oven-4": ()}
DOORS = ("2026-03-28T23:45", "2026-03-29T00:45", "2026-03-29T01:15", "2026-10-24T23:45", "2026-10-25T00:15", "2026-10-25T00:45")
DOORS_LATER = ("2026-10-25T01:15", "2026-10-25T01:45", "2026-10-25T02:15")


def plant(folder: Path, *alerts: Alert) -> Conf:
    metrics = {name: Metric(name, Aggregation.AVERAGE, 600) for name in ("ping", "door", "site_temp", "oven_temp")}
    groups = {"shop": Group("shop", ("ping",), 600, "all"), "all": Group("all", ("site_temp",), 600, "all")}
    devices = {name: Device(name, members) for name, members in DEVICES.items()}
    return conf(folder, metrics=metrics, groups=groups, devices=devices, alerts={alert.name: alert for alert in alerts or ALERTS})


def values(device: str, metric: str, *readings: tuple[str, float]) -> list[str]:
    return [event(device, metric, value, at(f"{time}:00")) for time, value in readings]


def every_minutes(  # noqa: PLR0917
    device: str, metric: str, value: float, first: str, last: str, step: int
) -> list[str]:
    begin, end = at(f"{first}:00"), at(f"{last}:00")
    return [
        event(device, metric, value, begin + timedelta(minutes=n)) for n in range(0, round((end - begin).total_seconds()) // 60 + 1, step)
    ]


def of_first_batch() -> list[str]:
    """A till that is open for an hour each day and sends each 4 minutes, by the clock of Berlin; doors at night; two sites."""
    tills = (("27T05:01", "27T05:57"), ("28T05:01", "28T05:57"), ("29T04:01", "29T04:57"), ("30T04:01", "30T04:33"))
    lines = [line for first, last in tills for line in every_minutes("till-1", "ping", 1, f"2026-03-{first}", f"2026-03-{last}", 4)]
    for opened in (*DOORS, *DOORS_LATER):
        shut = f"{at(f'{opened}:00') + timedelta(minutes=5):%Y-%m-%dT%H:%M}"
        lines += values("door-1", "door", (opened, 1), (shut, 0))
    lines += every_minutes("a-1", "site_temp", 20, "2026-10-26T11:00", "2026-10-26T12:00", 10)
    return lines + every_minutes("b-1", "site_temp", 20, "2026-10-26T06:00", "2026-10-26T06:05", 5)


@pytest.fixture(scope="module")
def lived(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """Three batches, a conf in which the summary of an alert is another one before the third, and ticks eleven minutes later."""
    made = plant(tmp_path_factory.mktemp("lived"))
    land(made.folder, "1.json", of_first_batch())
    run(made, spark)
    hot = values("oven-3", "oven_temp", ("2026-10-26T13:05", 299)) + values("oven-4", "oven_temp", ("2026-10-26T13:05", 291))
    land(made.folder, "2.json", [*every_minutes("b-1", "site_temp", 95, "2026-10-26T06:10", "2026-10-26T06:30", 5), *hot])
    run(made, spark)
    edited = replace(OVEN_HOT, summary="{entity} has {value:.0f} degC ({state})", severity="critical")
    made = plant(made.folder, *ALERTS[:-1], edited)
    later = every_minutes("b-1", "site_temp", 96, "2026-10-26T06:35", "2026-10-26T06:55", 5)
    land(made.folder, "3.json", [*later, *values("oven-4", "oven_temp", ("2026-10-26T13:35", 270))])
    run(made, spark)
    lake, now = Lake(made, None), datetime.now(UTC) + timedelta(minutes=11)
    while tick_if_due(lake, now):
        [*follow_all(lake)]
    return made


def fired(made: Conf, name: str) -> list[tuple[str, str]]:
    """Entity and instant of each change to firing."""
    rows = table(made, "gold.alerts").query(f"alert == '{name}' and state == 'firing'").sort_values("changed_at")
    return [(entity, f"{instant:%Y-%m-%dT%H:%M}") for entity, instant in zip(rows["entity"], rows["changed_at"], strict=True)]


def states(made: Conf, name: str) -> list[str]:
    return [*table(made, "gold.alerts").query(f"alert == '{name}'").sort_values(["known_at", "changed_at"])["state"]]


def test_a_till_that_is_switched_off_at_night_is_told_in_opening_hours_only(lived: Conf) -> None:
    assert fired(lived, "shop_silent") == [("till-1", "2026-03-30T04:40")]
    assert fired(lived, "shop_no_data") == [("till-1", "2026-03-30T04:43")]
    assert states(lived, "shop_silent") == states(lived, "shop_no_data") == ["firing"]


def test_hours_are_those_of_the_wall_clock_in_both_hours_of_one_name_and_on_the_day_that_lacks_one(lived: Conf) -> None:
    nights = ["2026-03-29T00:45", "2026-10-24T23:45", "2026-10-25T00:15", "2026-10-25T01:15"]
    assert fired(lived, "night_door") == [("door-1", night) for night in nights]


def test_a_site_that_is_six_hours_behind_alarms_when_its_readings_come_though_silver_calls_them_late(lived: Conf) -> None:
    late = table(lived, "silver.late")
    assert len(late.query("device_id == 'b-1'")) == 10
    assert fired(lived, "site_hot") == [("b-1", "2026-10-26T06:10")]
    assert fired(lived, "site_hot_window") == [("b-1", "2026-10-26T06:20")]
    rows = table(lived, "gold.alerts").query("entity == 'b-1'")
    assert not rows["is_past"].any()
    came = late.query("value == 95")["ingested_at"].max()
    assert {*rows["known_at"]} == {came}


def test_another_summary_and_severity_of_an_alert_that_fires_end_nothing(lived: Conf) -> None:
    assert fired(lived, "oven_hot") == [("oven-3", "2026-10-26T13:05"), ("oven-4", "2026-10-26T13:05")]
    assert states(lived, "oven_hot") == ["firing", "firing"]


def test_verify_and_a_replay_give_the_same_rows(lived: Conf, spark: SparkSession, tmp_path: Path) -> None:
    assert differences(lived) == []
    copy_tree(lived.folder, tmp_path)
    made = replace(plant(tmp_path), alerts=lived.alerts)
    columns = [*table(made, "gold.alerts").columns.drop(["summary", "severity"])]  # a replay writes those of today
    before = table(made, "gold.alerts")[columns]
    replay(made, spark)
    after = table(made, "gold.alerts")[columns]
    assert sorted(map(str, after.to_numpy().tolist())) == sorted(map(str, before.to_numpy().tolist()))
    assert differences(made) == []


def test_prices_of_tomorrow_keep_no_alarm_of_today_from_firing(spark: SparkSession, tmp_path: Path) -> None:
    metrics = {name: Metric(name, Aggregation.AVERAGE, 600) for name in ("price", "power")}
    group, overload = Group("all", ("power",), 600, "all"), Alert("overload", Signal("reading", "power"), "value > 90")
    like = conf(tmp_path)
    made = replace(
        like,
        policy=replace(like.policy, max_future_seconds=172_800),
        metrics=metrics,
        devices={"market": Device("market", ()), "site-1": Device("site-1", ("all",))},
        groups={"all": group},
        alerts={"overload": overload},
    )
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    prices = [event("market", "price", 80 + hour % 7, now + timedelta(hours=hour)) for hour in range(36)]
    land(tmp_path, "1.json", [*prices, *(event("site-1", "power", 50, now + timedelta(minutes=minute)) for minute in range(10, 40, 5))])
    run(made, spark)
    land(tmp_path, "2.json", [event("site-1", "power", 95 + n, now + timedelta(minutes=40 + n)) for n in range(2)])
    run(made, spark)
    assert len(table(made, "silver.late")) == 2
    assert fired(made, "overload") == [("site-1", f"{now + timedelta(minutes=40):%Y-%m-%dT%H:%M}")]
    assert differences(made) == []
