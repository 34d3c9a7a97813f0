"""Signals: rows of tables in, samples with verdicts out; the same however steps are cut into slices."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gold.alerts import intervals
from gold.alerts.intervals import with_entities, without_entities
from gold.alerts.samples import samples
from gold.alerts.signals import Carried
from gold.alerts.spec import Alert, Escalation, Flapping, Signal
from gold.alerts.states import judge
from gold.instants import to_micros
from gold.schema import AGGREGATES, SAMPLES, VECTORS
from silver.schema import READINGS
from tests.gold.alert_steps import STEPS, Step

START = datetime(2026, 1, 5, tzinfo=UTC)
HOT = Alert("hot", Signal("reading", "temperature"), "value > 280")
Rows = list[dict[str, Any]]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def reading(device: str, seconds: float, value: float, **others: Any) -> dict[str, Any]:
    return {"device_id": device, "metric": "temperature", "event_time": at(seconds), "value": value, "groups": ["kitchen"]} | others


@pytest.fixture(scope="module")
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


Steps = Sequence[tuple[float, Rows]]
"""Wall clocks in seconds, and the rows that come then."""


def sampled(store: duckdb.DuckDBPyConnection, alert: Alert, steps: Steps, schema: pa.Schema = READINGS, cuts: Sequence[int] = ()) -> Rows:
    """Samples, where a slice ends before each step of `cuts`; `step` counts all steps."""
    rows, carried, with_step = Rows(), Carried(), schema.append(pa.field("step", pa.int64()))
    for begin, end in zip([0, *cuts], [*cuts, len(steps)], strict=True):
        given = [row | {"step": step} for step, (_, of_step) in enumerate(steps[begin:end]) for row in of_step]
        store.register("given", pa.Table.from_pylist(given, with_step))
        of_slice, carried = samples(store, alert, "given", [to_micros(at(wall)) for wall, _ in steps[begin:end]], carried)
        rows += [row | {"step": row["step"] + begin} for row in of_slice.select(SAMPLES.names).cast(SAMPLES).to_pylist()]
    return rows


def in_one(rows: Rows, wall: float = 10_000) -> Steps:
    return [(wall, rows)]


def seen(rows: Rows) -> list[tuple[str, float, float, bool | None]]:
    """Entity, seconds, value and verdict."""
    return [(row["entity"], (row["at"] - START).total_seconds(), row["value"], row["verdict"]) for row in rows]


def test_a_reading_is_true_over_or_neither(store: duckdb.DuckDBPyConnection) -> None:
    rows = [reading("oven", n, value) for n, value in enumerate((300.0, 270.0, 250.0))]
    assert [row[3] for row in seen(sampled(store, HOT, in_one(rows)))] == [True, False, False]
    assert [row[3] for row in seen(sampled(store, replace(HOT, recover_when="value < 260"), in_one(rows)))] == [True, None, False]


def test_only_readings_of_the_metric_and_the_group_are_samples_with_their_lineage(store: duckdb.DuckDBPyConnection) -> None:
    identity = {"ingested_at": at(60), "bronze_batch": 3, "bronze_row": 14, "part": 1}
    rows = [
        reading("oven", 0, 300, **identity),
        reading("oven", 1, 300, metric="power"),
        reading("press", 2, 300, groups=["hall"]),
        reading("lamp", 3, 300, groups=None),
    ]
    (row,) = sampled(store, replace(HOT, signal=Signal("reading", "temperature", "kitchen")), in_one(rows))
    assert row == identity | {"step": 0} | {
        "entity": "oven",
        "at": at(0),
        "window_start": None,
        "window_end": None,
        "value": 300,
        "verdict": True,
        "reason": None,
    }


CHANGES = ("rate > 1.9 and seconds = 10", "change = 19.5", "previous = 20.5")


@pytest.mark.parametrize("cuts", [(), (1,), (1, 2, 3)])
def test_change_rate_and_previous_are_those_of_the_device_also_across_steps(store: duckdb.DuckDBPyConnection, cuts: list[int]) -> None:
    rows = [reading("oven", 0, 20), reading("fridge", 5, 4), reading("oven", 10, 20.5), reading("oven", 20, 40)]
    for condition in CHANGES:
        alert = replace(HOT, when=condition, recover_when=f"not ({condition})")
        of_steps = sampled(store, alert, [(step, [row]) for step, row in enumerate(rows)], cuts=cuts)
        assert [row[3] for row in seen(of_steps)] == [None, None, False, True]
        assert [row["verdict"] for row in sampled(store, alert, in_one(rows)) if row["entity"] == "oven"] == [None, False, True]


@pytest.mark.parametrize("cuts", [(), (1,), (1, 2)])
def test_a_reading_that_is_older_follows_those_of_its_own_batch_alone(store: duckdb.DuckDBPyConnection, cuts: list[int]) -> None:
    alert = replace(HOT, when="change >= 0")
    steps = [(0, [reading("oven", 100, 20)]), (1, [reading("oven", 10, 5), reading("oven", 20, 4)]), (2, [reading("oven", 110, 21)])]
    assert [(row[1], row[3]) for row in seen(sampled(store, alert, steps, cuts=cuts))] == [
        (100, None),
        (10, None),
        (20, False),
        (110, True),
    ]


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2, 3)])
def test_rows_wait_until_the_clock_of_the_signal_has_passed_them_and_come_in_order_of_time(
    store: duckdb.DuckDBPyConnection, cuts: list[int]
) -> None:
    alert = replace(HOT, wait_seconds=60, when="change > 0")
    steps = [(100, [reading("oven", 95, 3)]), (105, [reading("oven", 90, 2)]), (110, [reading("fridge", 150, 1)]), (165, [])]
    samples_of_steps = sampled(store, alert, [*steps, (216, [])], cuts=cuts)
    assert [(row["step"], row["entity"], (row["at"] - START).total_seconds(), row["verdict"]) for row in samples_of_steps] == [
        *((2, "oven", 90, None), (3, "oven", 95, True), (4, "fridge", 150, None)),
    ]


LEVEL = "try_cast(attributes['level'] as double)"


def test_what_cannot_be_computed_is_neither(store: duckdb.DuckDBPyConnection) -> None:
    rows = [reading("oven", 0, 0.0), reading("oven", 1, 0.5, attributes=[("level", "high")])]
    assert [row[3] for row in seen(sampled(store, replace(HOT, when="1 / value > 1"), in_one(rows)))] == [None, True]
    assert [row[3] for row in seen(sampled(store, replace(HOT, when=f"{LEVEL} > 1", recover_when=f"{LEVEL} < 0"), in_one(rows)))] == [
        None,
        None,
    ]
    assert [row[3] for row in seen(sampled(store, replace(HOT, when="1 / value > 1 or seconds is null"), in_one(rows)))] == [True, True]


def test_a_window_is_a_sample_at_its_end(store: duckdb.DuckDBPyConnection) -> None:
    key = {"device_group": "kitchen", "device_id": "oven", "metric": "temperature"}
    rows = [
        key | {"window_start": at(0), "window_end": at(600), "value": 200.0, "max": 210.0, "revision": 0},
        key | {"window_start": at(600), "window_end": at(1200), "value": 260.0, "max": 300.0, "revision": 0},
        key | {"window_start": at(600), "window_end": at(1200), "value": 260.0, "max": 300.0, "revision": 0, "device_group": "hall"},
    ]
    alert = Alert("hot", Signal("window", "temperature", "kitchen"), "max > 280 and change = 60")
    for steps in (in_one(rows), [(700.0, rows[:1]), (1300.0, rows[1:])]):
        found = sampled(store, alert, steps, AGGREGATES)
        assert seen(found) == [("oven", 600, 200.0, False), ("oven", 1200, 260.0, True)]
        assert [row["window_start"] for row in found] == [at(0), at(600)]


def test_features_of_a_vector_are_fields_by_their_names(store: duckdb.DuckDBPyConnection) -> None:
    of_group = {"device_group": "hall", "entity": "hall", "window_start": at(0), "revision": 0, "filled": []}
    rows = [
        of_group | {"window_end": at(600), "vector": [3.5, 20.0], "missing": []},
        of_group | {"window_end": at(1200), "vector": [None, 20.0], "missing": ["press-01.power"]},
        of_group | {"window_end": at(1800), "vector": [3.5], "missing": []},  # of an earlier conf
    ]
    alert = Alert("odd", Signal("vector", group="hall", features=("press-01.power", "temp")), '"press-01.power" > 3 and temp = 20')
    assert seen(sampled(store, alert, in_one(rows), VECTORS)) == [("hall", 600, 3.5, True), ("hall", 1200, None, None)]
    lacking = replace(alert, when="missing_share = 0.5 and 'press-01.power' in missing")
    assert seen(sampled(store, lacking, in_one(rows), VECTORS)) == [("hall", 600, 0.0, False), ("hall", 1200, 0.5, True)]


def by_themselves(rows: Rows) -> Steps:
    """Each in the second in which it is measured."""
    return [((row["event_time"] - START).total_seconds(), [row]) for row in rows]


@pytest.mark.parametrize("cuts", [(), (1,), (3,), (1, 2, 3, 4, 5)])
def test_an_interval_without_readings_of_who_was_seen_before_counts_none(store: duckdb.DuckDBPyConnection, cuts: list[int]) -> None:
    rows = [reading("oven", 10, 1), reading("oven", 299, 1), reading("fridge", 300, 1), reading("oven", 899, 1), reading("oven", 900, 1)]
    alert = Alert("silent", Signal("count", every_seconds=300), "readings = 0")
    found = sampled(store, alert, [*by_themselves(rows), (1000, [])], cuts=cuts)
    assert [(row["step"], *counted) for row, counted in zip(found, seen(found), strict=True)] == [
        (2, "oven", 300, 2, False),
        *((3, "fridge", 600, 1, False), (3, "oven", 600, 0, True)),
        *((4, "fridge", 900, 0, True), (4, "oven", 900, 1, False)),
    ]
    assert sorted(row[:3] for row in seen(sampled(store, alert, in_one(rows)))) == sorted(row[:3] for row in seen(found))


def test_intervals_before_1970_are_those_of_their_clock(store: duckdb.DuckDBPyConnection) -> None:
    of_1955 = datetime(1955, 7, 1, tzinfo=UTC)
    rows = [reading("oven", 0, 1) | {"event_time": of_1955 + timedelta(seconds=seconds)} for seconds in (1, 299, 300)]
    found = sampled(store, Alert("few", Signal("count", every_seconds=300), "readings < 2"), in_one(rows))
    assert [(row["at"] - of_1955, row["value"]) for row in found] == [(timedelta(seconds=300), 2)]


def test_an_interval_is_judged_by_the_clock_where_nothing_comes_any_more_and_waits_as_long_as_asked(
    store: duckdb.DuckDBPyConnection,
) -> None:
    alert = Alert("silent", Signal("count", every_seconds=300), "readings = 0")
    steps = [(20.0, [reading("oven", 10, 1)]), (309.0, []), (310.0, []), (610.0, []), (640.0, []), (641.0, [reading("oven", 299, 1)])]
    found = sampled(store, alert, steps)
    assert [(row["step"], *counted[1:]) for row, counted in zip(found, seen(found), strict=True)] == [(2, 300, 1, False), (3, 600, 0, True)]
    waits = sampled(store, replace(alert, wait_seconds=30), steps)
    assert [(row["step"], row["value"]) for row in waits] == [(3, 1), (4, 0)]


def test_who_is_expected_has_empty_intervals_without_ever_having_sent_and_none_once_it_is_not_any_more(
    store: duckdb.DuckDBPyConnection,
) -> None:
    alert = Alert("silent", Signal("count", every_seconds=300), "readings = 0")
    carried = with_entities(alert, Carried(), ["fridge", "oven"])
    with_step = READINGS.append(pa.field("step", pa.int64()))
    store.register("given", pa.Table.from_pylist([reading("oven", 10, 1) | {"step": 1}], with_step))
    found, carried = samples(store, alert, "given", [to_micros(at(wall)) for wall in (5, 10, 300)], carried)
    assert seen(found.cast(SAMPLES).to_pylist()) == [("fridge", 300, 0, True), ("oven", 300, 1, False)]
    store.register("given", with_step.empty_table())
    found, _ = samples(store, alert, "given", [to_micros(at(600))], without_entities(carried, ["fridge"]))
    assert seen(found.cast(SAMPLES).to_pylist()) == [("oven", 600, 0, True)]


def test_seventy_years_without_a_reading_are_few_samples(store: duckdb.DuckDBPyConnection) -> None:
    rows = [reading("oven", 0, 1), reading("oven", 0, 1) | {"event_time": datetime(1955, 7, 1, tzinfo=UTC)}]
    alert = Alert("silent", Signal("count", every_seconds=60), "readings = 0", for_times=3)
    samples_seen = sampled(store, alert, [(0, rows), (130, []), (190, [])])
    assert len(samples_seen) < 1100
    changes = judge(alert, {}, pa.Table.from_pylist(samples_seen, SAMPLES), [to_micros(at(wall)) for wall in (0, 130, 190)]).changes
    states = [(row["changed_at"].isoformat(), row["state"]) for row in changes.to_pylist()]
    assert states == [
        *(("1955-07-01T00:02:00+00:00", "pending"), ("1955-07-01T00:04:00+00:00", "firing")),
        *(("2026-01-05T00:01:00+00:00", "normal"), ("2026-01-05T00:02:00+00:00", "pending")),
    ]


@given(
    st.sampled_from([{}, {"for_seconds": 50}, {"for_times": 3}]),
    st.sampled_from([{}, {"keep_firing_seconds": 70}, {"flapping": Flapping(0.3, 4)}]),
    st.sampled_from(["readings = 0", "readings > 0"]),
    STEPS,
)
def test_empty_intervals_that_are_passed_over_change_nothing(
    wait: dict[str, Any], keep: dict[str, Any], when: str, steps: list[Step]
) -> None:
    alert = replace(Alert("a", Signal("count", every_seconds=2), when, escalate=(Escalation(30, "critical"),)), **wait, **keep)
    rows = [(step.wall, [reading(device, second, 1.0) for device, second, _ in step.samples]) for step in steps]
    walls = [to_micros(at(wall)) for wall, _ in rows]
    judged = []
    with duckdb.connect(config={"threads": 1}) as store, pytest.MonkeyPatch.context() as patched:
        for most in (intervals.MOST_EMPTY, 6):
            patched.setattr(intervals, "MOST_EMPTY", most)
            judged.append(judge(alert, {}, pa.Table.from_pylist(sampled(store, alert, rows), SAMPLES), walls))
    assert judged[0].changes.to_pylist() == judged[1].changes.to_pylist()
    assert (judged[0].states, judged[0].rings_at) == (judged[1].states, judged[1].rings_at)


def test_readings_are_counted_by_group_too(store: duckdb.DuckDBPyConnection) -> None:
    rows = [reading("oven", 1, 1, groups=["kitchen", "building"]), reading("fridge", 2, 1), reading("press", 3, 1, groups=["hall"])]
    by_group = Alert("silent", Signal("count", every_seconds=300, by="group"), "readings < 2")
    steps = [*in_one(rows, 3), (300, [])]
    assert seen(sampled(store, by_group, steps)) == [("building", 300, 1, True), ("hall", 300, 1, True), ("kitchen", 300, 2, False)]
    of_kitchen = replace(by_group, signal=replace(by_group.signal, group="kitchen"))
    assert seen(sampled(store, of_kitchen, [*in_one(rows, 3), (301, [])])) == [("kitchen", 300, 2, False)]


def test_the_account_of_a_source_has_shares_of_all_measurements(store: duckdb.DuckDBPyConnection) -> None:
    columns = ("source", "ingested_at", "events", "readings", "quarantined", "late", "duplicates", "conflicts")
    schema = pa.schema([(name, {0: pa.string(), 1: SAMPLES.field("at").type}.get(n, pa.int64())) for n, name in enumerate(columns)])
    rows = [dict(zip(columns, row, strict=True)) for row in [("plant", at(1), 9, 6, 1, 0, 1, 1), ("plant", at(2), 1, 0, 2, 0, 0, 0)]]
    alert = Alert("bad", Signal("account", every_seconds=60), "quarantined_share > 0.2 and events = 10")
    for cuts in ([], [1], [1, 2]):
        found = sampled(store, alert, [(1, rows[:1]), (2, rows[1:]), (125, [])], schema, cuts)
        assert seen(found) == [("plant", 60, 0.3, True), ("plant", 120, None, False)]


KINDS = st.sampled_from(
    [
        Alert("a", Signal("reading", "temperature"), "change > 0", "change < 0", for_seconds=20),
        Alert("a", Signal("reading", "temperature"), "rate > 0.01 or value = 3", keep_firing_seconds=15, wait_seconds=30),
        Alert("a", Signal("count", every_seconds=30), "readings = 0", for_times=2),
        Alert("a", Signal("count", every_seconds=30), "readings = 0", for_times=2, wait_seconds=20),
    ]
)


@given(KINDS, STEPS, st.lists(st.integers(0, 12), max_size=7).map(sorted))
def test_samples_and_what_is_judged_of_them_are_the_same_however_steps_are_cut(alert: Alert, steps: list[Step], cuts: list[int]) -> None:
    rows = [(step.wall, [reading(device, second, float(second % 4)) for device, second, _ in step.samples]) for step in steps]
    with duckdb.connect(config={"threads": 1}) as store:
        whole, cut = (sampled(store, alert, rows, cuts=ends) for ends in ([], [min(end, len(rows)) for end in cuts]))
    assert cut == whole
    of_steps = [(row["step"], row["entity"], row["at"]) for row in whole]
    assert of_steps == sorted(of_steps)
    judged = judge(alert, {}, pa.Table.from_pylist(whole, SAMPLES), [to_micros(at(wall)) for wall, _ in rows]).changes
    assert {row["entity"] for row in judged.to_pylist()} <= {"a", "b"}
