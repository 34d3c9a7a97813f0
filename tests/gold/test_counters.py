"""Counters: what a meter rose by, against meters whose true rise is known; and windows that add up to what the meter rose."""

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gold.counters import Count, Kind, count, tidied
from gold.windows.links import WINDOWS, link
from orchestration.audit.verify.counters import Meter
from silver.aggregation import Aggregation
from silver.metric import CounterRule, Metric

MINUTE = 60_000_000


def rise(values: list[float], rule: CounterRule = CounterRule()) -> float:  # noqa: B008
    """Of readings a minute apart."""
    counted = count(rule, None, np.arange(len(values)) * MINUTE, np.array(values))
    return tidied(float(counted.rises.sum()), max(values))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([412.6, 412.6, 412.7, 412.6, 412.7, 412.8], 0.2),
        ([5688566, 5213928, 5213931, 5688570], 4),
        ([3.737, 0, 0, 3.746], 0.009),
        ([100, 0, 0, 0, 99.5, 100, 103], 3),
        ([100, 0, 4], 4),
        ([100, 0, 0, 4, 6], 6),
        ([990, 5, 9], 9),
        ([700, 4, 50, 0, 51], 51),
        ([700, *range(4, 730, 3)], 727),
        ([1000, 990, 991, 999, 1000, 1002], 2),
        ([1000, 700, 705], 5),
        ([120, -1, 121], 1),
        ([-1, 120, 121], 1),
        ([5], 0),
        ([1000, 670, 900, 1005], 5),
        ([1000, 0, 670, 1005], 5),
        ([1000, 0, 670, 670, 675], 675),
    ],
)
def test_a_fall_is_noise_a_low_stretch_or_a_new_begin(values: list[float], expected: float) -> None:
    assert rise(values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([65000, 65530, 4, 14], 550),
        ([99990, 100000, 7, 9], 19),
        ([32760, 32768, 8], 16),
        ([65530, 0, 0, 65531, 3], 9),
        ([65530, 0, 0, 3], 9),
        ([65530, 4, 65531], 10),  # the 4 was counted, and what is true is not counted again
        ([65530, 10000], 10000),
        ([50000, 5], 5),
    ],
)
def test_a_wrap_leads_from_the_last_tenth_to_the_first(values: list[float], expected: float) -> None:
    assert rise(values, CounterRule(wraps_at=65536)) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [([101, 99999, 102], 1), ([101, 99999, 99999.5, 100000], 1), ([101, 111, 112], 11), ([101, 112, 113], 1), ([101, 0, 111], 10)],
)
def test_a_rise_that_is_too_fast_is_none(values: list[float], expected: float) -> None:
    assert rise(values, CounterRule(most_per_hour=600)) == expected


def test_noise_may_be_an_amount() -> None:
    assert rise([10, 9.5, 9.6, 10, 11], CounterRule(glitch_amount=0.5)) == 1
    assert rise([10, 9.4, 9.45], CounterRule(glitch_amount=0.5)) == 0.05


@st.composite
def meters(draw: st.DrawFn) -> tuple[CounterRule, list[float], list[bool], float, float]:
    """A rule, what a meter shows a minute apart, which readings are odd, its true rise, and the largest between two readings.

    It rises, stands still, is reset to 0 and wraps; readings are lost; some are a little low, 0, or stale by up to a third. An odd stretch
    has at most three readings at one level, and begins once the meter is well above 0. Another one at another level may be right behind it;
    behind two of them is a true reading.
    """
    rng = random.Random(draw(st.integers(0, 2**32)))
    width = draw(st.sampled_from([None, 100_000]))
    rule, most = CounterRule(wraps_at=width), 100
    value, total, shown, odd, largest = float(rng.randint(0, 99_000)), 0.0, list[float](), list[bool](), 0.0
    unread, stretch, stretches = 0.0, 0, 0
    for _ in range(draw(st.integers(2, 60))):
        step = float(rng.choice([0, 0, 1, 7, rng.randint(0, most)]))
        value, unread = value + step, unread + step
        if width is not None and value >= width:
            value -= width
        elif rng.random() < 0.03 and stretch == 0 and 1_000 < value < 0.9 * (width or math.inf):
            value = 0.0
        is_possible = stretch == 0 and stretches < 2 and value > 20_000 and (width is None or value < 0.95 * width)
        if is_possible and rng.random() < (0.3 if stretches else 0.1):
            stretch, stretches = rng.randint(1, 3), stretches + 1
            low = value * rng.choice([0.0, 0.999, 0.99, 0.9, 0.67])
        if stretch:
            stretch -= 1
            shown.append(low)
            odd.append(True)
        elif rng.random() < 0.9 or not shown:
            shown.append(value)
            odd.append(False)
            total, largest, unread = total + (unread if len(shown) > 1 else 0.0), max(largest, unread), 0.0
            stretches = 0
    return rule, shown, odd, total, largest


def windows_of(values: list[float], step: int, slide: int, metric: Metric) -> pa.Table:
    """Windows as gold.windows.aggregates hands them on."""
    times, rows = [n * MINUTE for n in range(len(values))], []
    for end in range(slide, times[-1] + step + slide, slide):
        series = [{"at": at, "value": value} for at, value in zip(times, values, strict=True) if end - step <= at < end]
        if series:
            rows.append({"device_group": "g", "device_id": "d", "metric": metric.name, "window_end": end, "series": series})
    columns = [
        pa.array([row.get(field.name) for row in rows], pa.int64() if field.name == "window_end" else field.type) for field in WINDOWS
    ]
    return pa.table([column.cast(field.type) for column, field in zip(columns, WINDOWS, strict=True)], WINDOWS)


@given(meters(), st.integers(1, 7), st.integers(0, 60))
def test_what_all_windows_rose_is_what_the_meter_truly_rose_within_one_reading(
    meter: tuple[CounterRule, list[float], list[bool], float, float], length: int, cut: int
) -> None:
    """However windows are cut, and wherever one run ends and the next goes on from what is recorded."""
    rule, values, odd, truth, largest = meter
    metric = Metric("c", Aggregation.COUNTER_INCREASE, 60 * length, counter=rule)
    windows = windows_of(values, length * MINUTE, length * MINUTE, metric)
    whole = link(windows, {"c": metric})
    head = link(windows.slice(0, cut), {"c": metric})
    made = pa.concat_tables([head, *([head.slice(len(head) - 1)] if len(head) else []), windows.slice(cut)], promote_options="default")
    rest = link(made.slice(len(head)).select(WINDOWS.names).cast(WINDOWS), {"c": metric})
    assert pa.concat_tables([head, rest]).equals(whole)
    risen = sum(whole["value"].to_pylist())
    if not odd[0] and not odd[-1]:
        assert risen == pytest.approx(truth, abs=largest + 1e-6)
    other = Meter(rule)
    again = [step.amount for at, value in enumerate(values) if (step := other.read(at * MINUTE, value))]
    assert risen == pytest.approx(sum(again), abs=1e-6)


@given(
    st.lists(st.sampled_from([0.0, 5.0, 40.0, 50.0, 95.0, 100.0, -3.0, 51.0, 99.0, 60.0, 3.0]), min_size=1, max_size=30),
    st.integers(0, 30),
    st.sampled_from([None, 3000]),
)
def test_a_meter_goes_on_from_numbers_that_a_column_holds(values: list[float], cut: int, most: float | None) -> None:
    rule, times = CounterRule(wraps_at=100, most_per_hour=most), np.arange(len(values)) * MINUTE
    whole = count(rule, None, times, np.array(values))
    head = count(rule, None, times[:cut], np.array(values[:cut]))
    state = Count.from_list(head.state.to_list() if head.state else [])
    rest = count(rule, state, times[cut:], np.array(values[cut:]))
    assert ([*head.rises, *rest.rises], [*head.kinds, *rest.kinds], rest.state) == ([*whole.rises], [*whole.kinds], whole.state)
    other = Meter(rule)
    kinds = {(False, False, False): Kind.RISE, (True, False, False): Kind.GLITCH, (False, True, False): Kind.WRAP}
    for step, kind, (at, value) in zip(whole.rises, whole.kinds, enumerate(values), strict=True):
        again = other.read(at * MINUTE, value)
        assert (step, kind) == ((again.amount, kinds.get(again[1:], Kind.RESET)) if again else (0, -1))
