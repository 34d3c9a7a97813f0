"""Alerts of whole runs where sources are of several lanes: a site that is six hours behind, and prices of tomorrow."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession

from gold.alerts.spec import Alert, Signal
from gold.windows.spec import Group
from orchestration.conf.model import Conf, Device, Source
from orchestration.conf.transport_settings import LandingFolder
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.lakes import SHAPE, conf, differences, event, land, latest, replay, run, table
from tests.rows import at


def plant(folder: Path, bounds: dict[str, dict[str, Any]], metrics: tuple[str, ...], alerts: tuple[Alert, ...], *devices: str) -> Conf:
    """A source a name, with bounds of its own, and one group of all metrics and devices."""
    changes: dict[str, Any] = {
        "sources": {name: replace(source_of(folder, name), **own) for name, own in bounds.items()},
        "metrics": {name: Metric(name, Aggregation.AVERAGE, 600) for name in metrics},
        "devices": {name: Device(name, ("all",)) for name in devices},
        "groups": {"all": Group("all", metrics, 600, "all")},
        "alerts": {alert.name: alert for alert in alerts},
    }
    return conf(folder, **changes)


def source_of(folder: Path, name: str) -> Source:
    return Source(name, SHAPE, LandingFolder(folder / name, settle_seconds=0.0))


def fired(made: Conf, name: str) -> list[tuple[str, str]]:
    """Entity and instant of each change to firing."""
    rows = table(made, "gold.alerts").query(f"alert == '{name}' and state == 'firing'").sort_values("changed_at")
    return [(entity, f"{instant:%Y-%m-%dT%H:%M}") for entity, instant in zip(rows["entity"], rows["changed_at"], strict=True)]


def values(device: str, metric: str, value: float, *minutes: datetime) -> list[str]:
    return [event(device, metric, value, minute) for minute in minutes]


def test_a_site_six_hours_behind_that_has_a_lane_is_not_late_and_alarms_when_its_readings_come(spark: SparkSession, tmp_path: Path) -> None:
    alerts = (
        Alert("site_hot", Signal("reading", "site_temp"), "value > 80"),
        Alert("site_hot_window", Signal("window", "site_temp", "all"), "value > 80"),
        Alert("mostly_late", Signal("account", every_seconds=60), "late_share > 0.2"),
    )
    made = plant(tmp_path, {"site_a": {}, "site_b": {"lateness_seconds": 21_600}}, ("site_temp",), alerts, "a-1", "b-1")
    step, site_a, site_b = timedelta(minutes=5), at("2026-10-26T11:00:00"), at("2026-10-26T06:00:00")
    batches = [(range(0, 14, 2), range(2), 20), (range(14, 20, 2), range(2, 7), 95), (range(20, 26, 4), range(7, 12), 96)]
    for number, (of_a, of_b, value) in enumerate(batches):
        land(tmp_path, f"{number}.json", values("a-1", "site_temp", 20, *(site_a + n * step for n in of_a)), "site_a")
        land(tmp_path, f"{number}.json", values("b-1", "site_temp", value, *(site_b + n * step for n in of_b)), "site_b")
        run(made, spark)
    assert (len(table(made, "silver.readings")), len(table(made, "silver.late"))) == (24, 0)
    assert fired(made, "site_hot") == [("b-1", "2026-10-26T06:10")]
    assert fired(made, "site_hot_window") == [("b-1", "2026-10-26T06:20")]
    assert fired(made, "mostly_late") == []
    windows = latest(made, "gold.all_aggregates", ["device_id", "window_start"]).query("device_id == 'b-1'").set_index("window_end").value
    assert [windows[pd.Timestamp(f"2026-10-26T06:{end}:00Z")] for end in (10, 20, 30, 40, 50)] == [20.0, 95.0, 95.0, 95.5, 96.0]
    assert differences(made) == []
    before = table(made, "gold.alerts")
    replay(made, spark)
    after = table(made, "gold.alerts")
    assert sorted(map(str, after.to_numpy().tolist())) == sorted(map(str, before.to_numpy().tolist()))
    assert differences(made) == []


def test_prices_of_tomorrow_keep_no_alarm_of_today_from_firing(spark: SparkSession, tmp_path: Path) -> None:
    alerts = (
        Alert("overload", Signal("reading", "power"), "value > 90"),
        Alert("overload_window", Signal("window", "power", "all"), "value > 90"),
    )
    made = plant(tmp_path, {"meters": {}, "market": {"ahead_seconds": 172_800}}, ("price", "power"), alerts, "market", "site-1")
    begin = (datetime.now(UTC) - timedelta(hours=2)).replace(minute=0, second=0, microsecond=0)
    minute, hour = timedelta(minutes=1), timedelta(hours=1)
    land(tmp_path, "1.json", [event("market", "price", 80 + n % 7, begin + n * hour) for n in range(36)], "market")
    land(tmp_path, "1.json", values("site-1", "power", 50, *(begin + n * minute for n in range(0, 30, 5))), "meters")
    run(made, spark)
    land(tmp_path, "2.json", [event("site-1", "power", 95 + n, begin + (40 + n) * minute) for n in range(2)], "meters")
    run(made, spark)
    land(tmp_path, "3.json", values("site-1", "power", 50, begin + 70 * minute, begin + 36 * hour), "meters")
    run(made, spark)
    assert len(table(made, "silver.late")) == 0
    assert len(table(made, "silver.readings").query("metric == 'price'")) == 36
    assert [list(rules) for rules in table(made, "silver.quarantine").broken_rules] == [["event_time_is_not_in_the_future"]]
    assert fired(made, "overload") == [("site-1", f"{begin + 40 * minute:%Y-%m-%dT%H:%M}")]
    assert fired(made, "overload_window") == [("site-1", f"{begin + 50 * minute:%Y-%m-%dT%H:%M}")]
    windows = latest(made, "gold.all_aggregates", ["metric", "window_start"]).query("metric == 'power'").sort_values("window_end")
    assert [*windows.value][:4] == [50.0, 50.0, 50.0, 95.5]  # the later ones by amendment: prices of this hour are past its beginning
    assert differences(made) == []


def test_a_lane_that_is_new_does_not_end_an_alarm(spark: SparkSession, tmp_path: Path) -> None:
    """A source that gets bounds goes over to another lane; the state of its alerts goes on."""
    hot = Alert("hot", Signal("reading", "site_temp"), "value > 80")
    before = plant(tmp_path, {"site_a": {}, "site_b": {}}, ("site_temp",), (hot,), "a-1", "b-1")
    after = replace(before, sources={**before.sources, "site_b": replace(before.sources["site_b"], lateness_seconds=21_600)})
    noon, minute = at("2026-10-26T12:00:00"), timedelta(minutes=1)
    for number, (made, value) in enumerate(((before, 95), (after, 96), (after, 20))):
        land(tmp_path, f"{number}.json", values("a-1", "site_temp", 20, noon + number * minute), "site_a")
        land(tmp_path, f"{number}.json", values("b-1", "site_temp", value, noon + number * minute), "site_b")
        run(made, spark)
    rows = table(after, "gold.alerts").sort_values("changed_at")
    assert [*zip(rows.entity, rows.state, strict=True)] == [("b-1", "firing"), ("b-1", "normal")]
    assert differences(after) == []
