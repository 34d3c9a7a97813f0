"""Values of simulated sensors: noise, faults, and the limits that the conf sets."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.conf.model import Device
from orchestration.connectors.simulator import messages
from orchestration.connectors.simulator.faults import FAULTS, Fault, Floats
from orchestration.connectors.simulator.messages import Sensors
from orchestration.connectors.simulator.plan import Odds, Plan
from silver.aggregation import Aggregation
from silver.metric import Metric

TEMPERATURE = Metric("temperature", Aggregation.AVERAGE, 60, "degC")
FAULTY = [Fault(kind, 60 * n + 40, 60 * n + 100, (2 * n, 2 * n + 1), 1440, 0.16) for n, kind in enumerate(FAULTS)]
"""A fault of each kind, in a device of its own with two series. Each begins before the one before it ends."""


def sensors(metrics: tuple[Metric, ...], devices: int = 1, faults: tuple[Fault, ...] = ()) -> Sensors:
    """Sensors that measure once a minute."""
    names = tuple(Device(f"oven-{n}") for n in range(devices))
    plan = Plan(names, metrics, 1, 0, start_us=0, interval_us=60_000_000, lateness_us=0, shape="long", odds=Odds(), faults=faults)
    return Sensors(plan, np.random.default_rng(0))


def values(metric: Metric, ticks: int, devices: int = 1) -> Floats:
    """One row a tick, one column a device."""
    return sensors((metric,), devices).values(np.arange(ticks))


@cache
def faulty(*faults: Fault) -> Sensors:
    return sensors((TEMPERATURE, Metric("power", Aggregation.AVERAGE, 60, "W")), len(FAULTS), faults)


def test_a_value_is_near_the_value_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for share in ("STUCK_SHARE", "DROPOUT_SHARE", "SPIKE_SHARE"):
        monkeypatch.setattr(messages, share, 0.0)
    same_minute = values(TEMPERATURE, 1440 * 90)[:, 0].reshape(90, 1440)
    noise = (same_minute - same_minute.mean(axis=0)).ravel()  # without the daily cycle
    assert np.corrcoef(noise[1:], noise[:-1])[0, 1] > 0.85


def test_a_stuck_sensor_repeats_itself_for_30_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "STUCK_SHARE", 0.05)
    monkeypatch.setattr(messages, "DROPOUT_SHARE", 0.0)
    seen = values(TEMPERATURE, 2100)[:, 0]
    begins = np.flatnonzero(np.diff(seen, prepend=np.nan) != 0)
    assert np.diff(begins).max() >= 30


def test_a_sensor_drops_out_for_the_share_of_the_time_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "DROPOUT_SHARE", 0.1)
    assert np.isnan(values(TEMPERATURE, 2000)).mean() == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("metric", "low", "high"),
    [
        (Metric("temperature", Aggregation.AVERAGE, 60, "degC", minimum=20.0, maximum=21.0), 20.0, 21.0),
        (Metric("depth", Aggregation.AVERAGE, 60, "m", maximum=-5.0), -105.0, -5.0),
        (Metric("fixed", Aggregation.AVERAGE, 60, minimum=3.0, maximum=3.0), 3.0, 3.0),
    ],
)
def test_values_stay_within_what_the_metric_accepts(metric: Metric, low: float, high: float) -> None:
    seen = values(metric, 3000, devices=2)
    assert low <= np.nanmin(seen) <= np.nanmax(seen) <= high


def test_a_metric_from_0_to_1_without_a_unit_is_a_switch() -> None:
    seen = values(Metric("door", Aggregation.LATEST, 60, minimum=0, maximum=1), 5000)
    assert set(seen[~np.isnan(seen)]) == {0.0, 1.0}


@pytest.mark.parametrize("fault", FAULTY, ids=lambda fault: fault.kind)
def test_a_fault_changes_what_it_names_and_nothing_else(fault: Fault) -> None:
    ticks = np.arange(600)
    ticks_changed, series_changed = np.nonzero(faulty(fault).values(ticks) != faulty().values(ticks))
    assert set(series_changed) == {*fault.series[: FAULTS[fault.kind].width]}
    assert fault.begin <= ticks_changed.min() <= ticks_changed.max() < fault.end
    assert len(set(ticks_changed)) > 50


def test_a_drift_grows_to_three_deviations_and_a_leak_falls_to_two() -> None:
    drift, leak = (next(fault for fault in FAULTY if fault.kind == kind) for kind in ("drift", "slow leak"))
    ticks = np.arange(600)
    change = faulty(drift, leak).values(ticks) - faulty().values(ticks)
    span = 60.0  # of an oven's temperature
    assert change[drift.begin : drift.end, drift.series[0]] == pytest.approx(np.linspace(0, 3 * 0.16 * span * 59 / 60, 60), abs=0.11)
    assert change[leak.begin : leak.end, leak.series[0]] == pytest.approx(np.linspace(0, -2 * 0.16 * span * 59 / 60, 60), abs=0.11)


def test_a_stuck_sensor_stays_where_the_fault_begins() -> None:
    stuck = next(fault for fault in FAULTY if fault.kind == "stuck")
    seen = faulty(*FAULTY).values(np.arange(stuck.begin, stuck.end))[:, stuck.series[0]]
    assert np.nanmax(seen) == np.nanmin(seen) == seen[0]


@given(cuts=st.sets(st.integers(1, 599), max_size=20))
def test_values_are_the_same_however_time_is_cut(cuts: set[int]) -> None:
    ticks = np.arange(600)
    chunks = [faulty(*FAULTY).values(chunk) for chunk in np.split(ticks, sorted(cuts))]
    np.testing.assert_array_equal(np.concatenate(chunks), faulty(*FAULTY).values(ticks))
