"""What simulated sensors measure: noise, faults, and the limits that the conf sets."""

import numpy as np
import pytest

from orchestration.conf.model import Device
from orchestration.connectors.simulator import signals
from orchestration.connectors.simulator.signals import CORRELATION, Signals, correlated
from silver.spec import Aggregation, Metric


def test_noise_of_blocks_is_that_of_row_by_row() -> None:
    white = np.random.default_rng(0).standard_normal((200, 3))
    rows = [np.array([1.0, 0.0, -1.0])]
    for row in white:
        rows.append(CORRELATION * rows[-1] + np.sqrt(1 - CORRELATION**2) * row)
    np.testing.assert_allclose(correlated(white, rows[0]), rows[1:], rtol=1e-12, atol=1e-12)


def test_noise_goes_on_from_one_call_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    for odds in ("STUCK_ODDS", "DROPOUT_ODDS", "SPIKE_ODDS"):
        monkeypatch.setattr(signals, odds, 0.0)
    rng = np.random.default_rng(0)
    sensors = Signals([Device("a")], [Metric("temperature", Aggregation.AVERAGE, 60, "degC")], rng)
    noon = np.array([0], dtype=np.int64)  # always the same time of day, so that only noise moves the value
    values = [sensors.values(rng, first, noon)[0, 0] for first in range(2000)]
    assert np.corrcoef(values[1:], values[:-1])[0, 1] > 0.85


def test_a_stuck_sensor_repeats_itself_for_30_readings_also_across_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "STUCK_ODDS", 0.002)
    monkeypatch.setattr(signals, "DROPOUT_ODDS", 0.0)
    rng = np.random.default_rng(0)
    sensors = Signals([Device("oven-01")], [Metric("temperature", Aggregation.AVERAGE, 60, "degC")], rng)
    values = np.concatenate([sensors.values(rng, first, np.arange(first, first + 7) * 60_000_000) for first in range(0, 2100, 7)])[:, 0]
    begins = np.flatnonzero(np.diff(values, prepend=np.nan) != 0)
    assert np.diff(begins).max() >= 30


@pytest.mark.parametrize(
    ("metric", "low", "high"),
    [
        (Metric("temperature", Aggregation.AVERAGE, 60, "degC", minimum=20.0, maximum=21.0), 20.0, 21.0),
        (Metric("depth", Aggregation.AVERAGE, 60, "m", maximum=-5.0), -105.0, -5.0),
        (Metric("fixed", Aggregation.AVERAGE, 60, minimum=3.0, maximum=3.0), 3.0, 3.0),
    ],
)
def test_values_stay_within_what_the_metric_accepts(metric: Metric, low: float, high: float) -> None:
    rng = np.random.default_rng(0)
    values = Signals([Device("a"), Device("b")], [metric], rng).values(rng, 0, np.arange(3000) * 60_000_000)
    assert low <= np.nanmin(values) <= np.nanmax(values) <= high


def test_a_metric_from_0_to_1_without_a_unit_is_a_switch() -> None:
    rng = np.random.default_rng(0)
    door = Metric("door", Aggregation.LATEST, 60, minimum=0, maximum=1)
    values = Signals([Device("a")], [door], rng).values(rng, 0, np.arange(5000) * 60_000_000)
    assert set(values[~np.isnan(values)]) == {0.0, 1.0}
