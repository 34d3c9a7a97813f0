"""Faults that the simulator plants: they change some values and nothing else, and their labels say which."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from orchestration.connectors.simulator.plan import Plan
from tests.orchestration.connectors.simulator.test_simulator import called, planned, written


@pytest.fixture(scope="module")
def made() -> Plan:
    """A plan of 16 hours; windows of power are one hour long."""
    return planned(events=10_000, interval_seconds=600, faults=4)


def test_faults_change_values_within_their_instants_and_nothing_else(tmp_path: Path, made: Plan) -> None:
    (_, truth), (_, normal) = written(tmp_path / "faulty", made), written(tmp_path / "normal", replace(made, faults=()))
    pd.testing.assert_frame_equal(truth.drop(columns="value"), normal.drop(columns="value"))
    changed = truth[truth.value.ne(normal.value) & truth.value.notna() & (truth.kind != "future")]
    times = changed.groupby("device_id").event_time.agg(["min", "max"])
    assert len(times) == 4
    for fault in made.faults:
        device, metric = divmod(fault.series[0], len(made.metrics))
        name = made.devices[device].device_id
        begin, end = (pd.Timestamp(made.measured_us(tick, device), unit="us", tz="UTC") for tick in (fault.begin, fault.end))
        assert begin <= times["min"][name] <= times["max"][name] < end
        assert made.metrics[metric].name in set(changed.metric[changed.device_id == name])


def test_faults_come_one_after_another_over_kinds_and_devices_in_the_second_half(made: Plan) -> None:
    begins = [fault.begin for fault in made.faults]
    assert begins == sorted(begins)
    assert begins[0] >= 49
    assert max(fault.end for fault in made.faults) <= 99
    assert len({fault.kind for fault in made.faults}) == len({fault.series[0] // len(made.metrics) for fault in made.faults}) == 4


@pytest.mark.parametrize("devices", [1, 8])
def test_a_device_never_has_two_faults_at_once(devices: int) -> None:
    made = planned(devices=[*planned().devices][:devices], events=200_000, interval_seconds=300, faults=30)
    free_at = dict.fromkeys(range(devices), 0)
    for fault in made.faults:
        device = fault.series[0] // len(made.metrics)
        assert fault.begin >= free_at[device]
        free_at[device] = fault.end


def test_the_command_labels_faults_and_adds_those_of_a_second_run(tmp_path: Path) -> None:
    for start in ("2026-01-05", "2026-01-12"):
        called(tmp_path / "landing", "--events", "10000", "--interval", "600", "--faults", "1", "--files", "1", "--start", start)
    assert (tmp_path / "landing.truth" / "_labels.csv").read_text().splitlines() == [
        "entity,begins_at,ends_at,kind,metric",
        "oven-03,2026-01-05T10:11:00Z,2026-01-05T12:11:00Z,drift,temperature",
        "oven-03,2026-01-12T10:11:00Z,2026-01-12T12:11:00Z,drift,temperature",
    ]
    assert len(pd.read_parquet(tmp_path / "landing.truth").file.unique()) == 2
