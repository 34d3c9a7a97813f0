"""A stranger's plant, a brewery, by conf alone: its YAML as text, its payloads as they come, its gold rows computed by hand."""

import numpy as np
import pytest
from pyspark.sql import SparkSession

from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from tests.lakes import land, run, table
from tests.rows import at

CONF = {
    "pipeline": """
pipeline: brewery
lake: ./lake
policy: {lateness_seconds: 60}
""",
    "sources": """
sources:
  gateway: # a list of measurements an event, each with its own time and unit
    path: ./gateway
    format: json
    settle_seconds: 0
    device: {field: gw.id}
    zone: {field: gw.hall}
    each: data.readings
    time: {field: each.at, format: epoch_ms}
    metric: {field: each.m}
    value: {field: each.v}
    unit: {field: each.u}
  probes: # the file is the device; local times
    path: ./probes
    files: "*.csv"
    format: csv
    header: true
    separator: ";"
    settle_seconds: 0
    device: {file_name: '^probe-(.+)[.]csv$'}
    zone: {constant: cellar}
    time: {field: Zeit, format: dd.MM.yyyy HH:mm, time_zone: Europe/Berlin}
    metrics: {mash: Temperatur}
    unit: {constant: degF}
""",
    "metrics": """
metrics:
  flow: {aggregation: sum, step_seconds: 300, unit: L, conversions: {hL: {multiply: 100}}}
  mash: {aggregation: average, step_seconds: 300, unit: degC, conversions: {degF: {multiply: 0.5555555555555556, add: -17.77777777777778}}}
  foam: {aggregation: median, step_seconds: 120, slide_seconds: 60, unit: cm, maximum: 50}
""",
    "groups": """
groups:
  cellar:
    metrics: [flow, mash]
    vector: {entity: group, features: [tank-1.flow, p7.mash], max_fill_seconds: 300}
  brewhouse:
    metrics: [foam]
    vector: {features: [foam]}
""",
    "devices": """
devices:
  tank-1: {groups: [cellar, brewhouse]}
  p7: {groups: [cellar]}
""",
    "rules": """
rules:
  foam_is_no_depth: {holds: metric <> 'foam' or value is null or value >= 0}
""",
}
MIDNIGHT_MS = 1_767_571_200_000
"""2026-01-05T00:00:00Z."""


def gateway_event(*readings: tuple[str, float | str, str | None, int]) -> str:
    """An event of the gateway: metric, value, unit, seconds after midnight."""
    cells = ",".join(
        f'{{"m":"{metric}","v":{value}{f""","u":"{unit}" """ if unit else ""},"at":{MIDNIGHT_MS + 1000 * seconds}}}'
        for metric, value, unit, seconds in readings
    )
    return f'{{"gw":{{"id":"tank-1","hall":"north","firmware":3}},"data":{{"readings":[{cells}]}}}}'


def of_day(minute: int, second: int = 0) -> object:
    return at(f"2026-01-05T00:{minute:02d}:{second:02d}")


@pytest.fixture(scope="module")
def brewery(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """The plant after a run."""
    folder = tmp_path_factory.mktemp("brewery")
    (folder / "conf").mkdir()
    for name, text in CONF.items():
        (folder / "conf" / f"{name}.yml").write_text(text)
    gateway = [
        gateway_event(("flow", 0.5, "hL", 10), ("flow", 20, "L", 70), ("foam", 3, None, 30)),
        gateway_event(("foam", 9, "cm", 45), ("foam", 4, "cm", 100), ("flow", 10, None, 310)),
        gateway_event(
            ("foam", -1, "cm", 50), ("foam", 2, "inch", 55), ("steam", 1, None, 58), ("foam", '"full"', "cm", 59)
        ),  # none is a reading
        gateway_event(("foam", 1, "cm", 720), ("flow", 1, "L", 720)),  # closes the windows that ended by 00:11
    ]
    land(folder, "monday.json", gateway, "gateway")
    probes = ["Zeit;Zustand;Temperatur", "05.01.2026 01:00;ok;212", "05.01.2026 01:01;ok;50", "05.01.2026 01:12;ok;32"]
    land(folder, "probe-p7.csv", probes, "probes")
    made = Lake.open(folder / "conf").conf
    run(made, spark)
    return made


def test_each_measurement_is_judged_by_itself_also_by_the_strangers_rule(brewery: Conf) -> None:
    rejected = table(brewery, "silver.quarantine").sort_values("part").broken_rules.map(list)
    assert rejected.to_list() == [["foam_is_no_depth"], ["unit_is_known"], ["metric_is_known"], ["value_is_a_number"]]
    readings = table(brewery, "silver.readings")
    assert len(readings) == 11
    zones = readings.groupby("device_id").zone.unique()
    assert {device: list(of_device) for device, of_device in zones.items()} == {"tank-1": ["north"], "p7": ["cellar"]}


def test_windows_hold_values_in_the_units_of_the_metrics(brewery: Conf) -> None:
    cellar = table(brewery, "gold.cellar_aggregates").sort_values(["device_id", "window_end"])
    assert list(zip(cellar.device_id, cellar.metric, cellar.window_start, cellar.value, cellar["count"], strict=True)) == [
        ("p7", "mash", of_day(0), pytest.approx(55.0, rel=1e-9), 2),
        ("tank-1", "flow", of_day(0), 70.0, 2),
        ("tank-1", "flow", of_day(5), 10.0, 1),
    ]


def test_the_vector_of_a_group_joins_two_sources(brewery: Conf) -> None:
    vectors = table(brewery, "gold.cellar_vectors").sort_values("window_end")
    assert list(zip(vectors.entity, vectors.window_end, map(list, vectors.filled), strict=True)) == [
        ("cellar", of_day(5), []),
        ("cellar", of_day(10), ["p7.mash"]),
    ]
    assert np.stack(vectors.vector.to_list()) == pytest.approx(np.array([[70.0, 55.0], [10.0, 55.0]]), rel=1e-9)


def test_the_vector_of_a_device_slides(brewery: Conf) -> None:
    foam = table(brewery, "gold.brewhouse_vectors").sort_values("window_end")
    assert list(zip(foam.entity, foam.window_end, map(list, foam.vector), strict=True)) == [
        ("tank-1", of_day(1), [6.0]),  # 3 and 9
        ("tank-1", of_day(2), [4.0]),  # 3, 9 and 4
        ("tank-1", of_day(3), [4.0]),
    ]
