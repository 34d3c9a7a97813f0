"""Values of simulated sensors: noise, faults, and the limits that the conf sets."""

import numpy as np
import pytest

from orchestration.conf.model import Device
from orchestration.connectors.simulator import messages
from orchestration.connectors.simulator.messages import Floats, Sensors
from orchestration.connectors.simulator.plan import Odds, Plan
from silver.aggregation import Aggregation
from silver.metric import Metric

TEMPERATURE = Metric("temperature", Aggregation.AVERAGE, 60, "degC")


def values(metric: Metric, ticks: int, devices: int = 1) -> Floats:
    """One row a tick, one column a device; a tick is a minute."""
    names = tuple(Device(f"oven-{n}") for n in range(devices))
    plan = Plan(names, (metric,), 1, 0, start_us=0, interval_us=60_000_000, lateness_us=0, shape="long", odds=Odds())
    return Sensors(plan, np.random.default_rng(0)).values(np.arange(ticks))


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
