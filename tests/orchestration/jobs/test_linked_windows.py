"""Windows that go on from those before them, end to end: cases of meters, late readings, groups that keep them aside, and a replay."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from gold.flows.spec import Counter
from gold.windows.spec import Group, Late, Vector
from orchestration.conf.model import Conf, Device
from orchestration.engine.lake import Lake
from silver.aggregation import Aggregation
from silver.metric import CounterRule, Metric
from tests.declared_flow import flow_of
from tests.lakes import conf, differences, event, land, latest, recorded, replay, run
from tests.rows import at

START = at("2026-01-05T08:00:00")
WRAPPING = CounterRule(wraps_at=65536)
METRICS = {
    metric.name: metric
    for metric in (
        Metric("total", Aggregation.COUNTER_INCREASE, 3600),
        Metric("pulses", Aggregation.COUNTER_INCREASE, 3600, counter=WRAPPING),
        Metric("sliding", Aggregation.COUNTER_INCREASE, 1200, slide_seconds=600),
        Metric("valve", Aggregation.TIME_WEIGHTED_AVERAGE, 3600, max_hold_seconds=9000),
        Metric("plain", Aggregation.AVERAGE, 600),
    )
}
GROUPS = {
    "plant": Group("plant", tuple(METRICS), 600, "plant", Vector("device", tuple(METRICS), 3600)),
    "aside": Group("aside", ("total", "sliding", "valve"), 600, "plant", late=Late.KEEP_ASIDE),
}
FLOWS = {
    "rise": flow_of("rise", Counter(metric="total", every_seconds=3600)),
    "pulse_rise": flow_of("pulse_rise", Counter(metric="pulses", every_seconds=3600, wraps_at=65536)),
}
CASES: dict[tuple[str, str], tuple[list[float], float]] = {
    ("inv-1", "total"): ([412.6, 412.6, 412.7, 412.6, 412.7, 412.8], 0.2),
    ("panel-1", "total"): ([5688566, 5213928, 5213931, 5688570], 4.0),
    ("plug-1", "total"): ([3.737, 0, 0, 3.746], 0.009),
    ("m16", "pulses"): ([65000, 65530, 4, 14], 550.0),
    ("m32", "pulses"): ([99990, 100000, 7, 9], 2.0),  # two are above wraps_at: in quarantine
    ("mhalf", "pulses"): ([32760, 32768, 8], 16.0),
    ("merr", "pulses"): ([120, -1, 121], 1.0),
}
"""Cases 35 and 36: readings ten minutes apart from 08:00 on, and what they rose by."""


def rises(made: Conf, name: str = "gold.aggregates") -> dict[Any, float]:
    """The newest value of each window of each metric of the group plant, by device, metric and end."""
    rows = latest(made, name, ("device_group", "device_id", "metric", "window_end"))
    return {
        (row["device_id"], row["metric"], row["window_end"].to_pydatetime()): row["value"]
        for row in rows[rows["device_group"] == "plant"].to_dict("records")
    }


def is_right(made: Conf) -> bool:
    return differences(made) == []


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """A lake after three runs: the cases and a slow meter, late readings of it, and newer ones."""
    folder: Path = tmp_path_factory.mktemp("meters")
    devices = {name: Device(name, ("plant", "aside")) for name in (*(device for device, _ in CASES), "slow", "clock")}
    made = conf(folder, metrics=METRICS, groups=GROUPS, flows=FLOWS, devices=devices)
    lines = [
        event(device, metric, value, START + timedelta(minutes=10 * n))
        for (device, metric), (values, _) in CASES.items()
        for n, value in enumerate(values)
    ]
    for name, hours, readings in (
        ("1.json", 7, [(0, 100), (70, 110), (200, 125), (330, 126)]),
        ("2.json", 7, [(130, 118), (59, 109.5)]),  # late
        ("3.json", 14, [(450, 140), (700, 150)]),
    ):
        lines += [event("slow", "valve", value % 7, START + timedelta(minutes=n)) for n, value in readings]
        lines += [event("slow", metric, value, START + timedelta(minutes=n)) for n, value in readings for metric in ("total", "sliding")]
        land(folder, name, [*lines, event("clock", "plain", 1, START + timedelta(hours=hours))])
        run(made, spark)
        lines = []
    return made


def test_each_case_of_a_meter_is_right_to_the_last_digit_in_both_tables(lake: Conf) -> None:
    found = rises(lake)
    assert {case: found[*case, at("2026-01-05T09:00:00")] for case in CASES} == {case: rise for case, (_, rise) in CASES.items()}
    flows = recorded(Lake(lake), "gold.measures").to_pylist()
    of_flow = {
        row["device_id"]: row["value"] for row in flows if row["window_end"] == at("2026-01-05T09:00:00") and row["device_id"] != "slow"
    }
    assert of_flow == {device: rise for (device, _), (_, rise) in CASES.items()}


def test_readings_that_no_counter_has_are_quarantined(lake: Conf) -> None:
    rows = recorded(Lake(lake), "silver.quarantine").to_pylist()
    assert sorted((row["device_id"], row["value"], *row["broken_rules"]) for row in rows) == [
        ("m32", 99990.0, "value_is_in_range"),
        ("m32", 100000.0, "value_is_in_range"),
        ("merr", -1.0, "value_is_in_range"),
    ]


def test_windows_add_up_to_what_the_meter_rose_with_gaps_and_late_readings(lake: Conf) -> None:
    of_slow = {end.hour: value for (device, metric, end), value in rises(lake).items() if (device, metric) == ("slow", "total")}
    assert of_slow == {9: 9.5, 10: 0.5, 11: 8.0, 12: 7.0, 14: 1.0, 16: 14.0, 20: 10.0}
    history = recorded(Lake(lake), "gold.aggregates").to_pylist()
    slow = [row for row in history if (row["device_group"], row["device_id"], row["metric"]) == ("plant", "slow", "total")]
    assert sorted((row["window_end"].hour, row["revision"]) for row in slow if row["revision"]) == [(9, 1), (10, 1), (11, 1), (12, 1)]


def test_a_value_holds_in_windows_without_a_reading_and_a_late_one_changes_those_behind_it(lake: Conf) -> None:
    """Readings of 08:00, 08:59 (late), 09:10, 10:10 (late), 11:20, 13:30, 15:30 and 19:40 hold two and a half hours."""
    valve = {end.hour: value for (_, metric, end), value in rises(lake).items() if metric == "valve"}
    assert valve == pytest.approx(
        {
            9: (59 * 2 + 1 * 4.5) / 60,
            10: (10 * 4.5 + 50 * 5) / 60,
            11: (10 * 5 + 50 * 6) / 60,
            12: (20 * 6 + 40 * 6) / 60,
            13: 6.0,
            14: (30 * 6 + 30 * 0) / 60,
            15: 0.0,
            16: (30 * 0 + 30 * 0) / 60,
            17: 0.0,
            18: 0.0,
            20: 3.0,
            21: 3.0,
        }
    )


def test_verify_finds_no_difference_and_a_replay_gives_the_same_windows(lake: Conf, spark: SparkSession) -> None:
    assert is_right(lake)
    before = rises(lake)
    replay(lake, spark)
    assert is_right(lake)
    assert rises(lake, "gold.aggregates") == before
