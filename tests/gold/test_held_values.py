"""Time-weighted averages: against an integral of the steps, however windows are cut and wherever one run goes on from another."""

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gold.windows.links import MADE, WINDOWS, link
from silver.aggregation import Aggregation
from silver.metric import CalendarStep, Metric
from tests.rows import at

SECOND = 1_000_000
Readings = list[tuple[int, float]]
"""Seconds and value, in order."""


def windows_of(readings: Readings, step: int, slide: int) -> pa.Table:
    """Windows as gold.windows.aggregates hands them on, of those that have a reading."""
    ends = sorted(
        {end for second, _ in readings for end in range((second // slide + 1) * slide, second // slide * slide + step + 1, slide)}
    )
    rows = [
        {"device_group": "g", "device_id": "d", "metric": "m", "window_start": (end - step) * SECOND, "window_end": end * SECOND}
        | {"series": [{"at": second * SECOND, "value": value} for second, value in readings if end - step <= second < end], "count": 1}
        for end in ends
    ]
    columns = [
        pa.array([row.get(field.name) for row in rows], pa.int64() if field.name.startswith("window") else field.type) for field in WINDOWS
    ]
    return pa.table([column.cast(field.type) for column, field in zip(columns, WINDOWS, strict=True)], WINDOWS)


def integral(readings: Readings, begin: int, end: int, hold: int) -> float | None:
    """Second by second: the mean of what is known; None where nothing is."""
    held = []
    for second in range(begin, end):
        before = [(at_second, value) for at_second, value in readings if at_second <= second]
        if before and second < before[-1][0] + hold:
            held.append(before[-1][1])
    return math.fsum(held) / len(held) if held else None


@given(
    st.dictionaries(st.integers(0, 300), st.integers(-5, 5).map(float), min_size=1, max_size=15),
    st.sampled_from([(10, 10), (60, 60), (60, 20)]),
    st.sampled_from([1, 7, 45, 500]),
    st.integers(0, 40),
    st.integers(0, 400),
)
def test_a_time_weighted_average_is_the_integral_of_what_held(
    by_second: dict[int, float], lengths: tuple[int, int], hold: int, cut: int, until: int
) -> None:
    step, slide = lengths
    readings = sorted(by_second.items())
    metric = Metric("m", Aggregation.TIME_WEIGHTED_AVERAGE, step, slide_seconds=slide, max_hold_seconds=hold)
    windows = windows_of(readings, step, slide)
    last = windows["window_end"].cast(pa.int64())[-1].as_py() // SECOND
    whole = link(windows, {"m": metric}, max(until, last) * SECOND)
    found = {
        end // SECOND: value
        for end, value in zip(whole["window_end"].cast(pa.int64()).to_pylist(), whole["value"].to_pylist(), strict=True)
    }
    expected = {end: integral(readings, end - step, end, hold) for end in range(slide, max(until, last) + 1, slide)}
    assert found == pytest.approx({end: value for end, value in expected.items() if value is not None}, abs=1e-9)

    head = windows.slice(0, cut)
    closed = head["window_end"].cast(pa.int64())[-1].as_py() if len(head) else 0
    first = link(head, {"m": metric}, closed)
    newest = first.slice(max(len(first) - 1, 0)).select(MADE.names)
    rest = link(
        pa.concat_tables([newest, windows.slice(cut)], promote_options="default").cast(WINDOWS), {"m": metric}, max(until, last) * SECOND
    )
    assert pa.concat_tables([first, rest]).equals(whole)


def test_a_window_without_a_reading_has_the_value_that_holds_and_counts_none() -> None:
    metric = Metric("m", Aggregation.TIME_WEIGHTED_AVERAGE, 60, max_hold_seconds=130)
    made = link(windows_of([(30, 4.0)], 60, 60), {"m": metric}, 600 * SECOND).to_pylist()
    assert [(row["value"], row["count"], row["latest"]) for row in made] == [(4.0, 1, None), (4.0, 0, None), (4.0, 0, None)]


def test_a_value_holds_over_days_of_the_calendar() -> None:
    begin = at("2026-03-27T23:00:00")
    metric = Metric("m", Aggregation.TIME_WEIGHTED_AVERAGE, step=CalendarStep.DAY, time_zone="Europe/Brussels", max_hold_seconds=10**6)
    row = {"device_group": "g", "device_id": "d", "metric": "m", "window_start": begin, "window_end": at("2026-03-28T23:00:00"), "count": 1}
    row["series"] = [{"at": int(begin.timestamp()) * SECOND, "value": 2.0}]
    windows = pa.Table.from_pylist([row], WINDOWS)
    made = link(windows, {"m": metric}, int(at("2026-03-31T00:00:00").timestamp()) * SECOND).to_pylist()
    assert [row["window_end"] for row in made] == [at("2026-03-28T23:00:00"), at("2026-03-29T22:00:00"), at("2026-03-30T22:00:00")]
