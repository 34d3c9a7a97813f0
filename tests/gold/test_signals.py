"""Signals: rows of tables in, samples with verdicts out; the same however time is cut into slices."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gold.alerts.signals import samples
from gold.alerts.spec import Alert, Signal
from gold.alerts.states import judge
from gold.schema import AGGREGATES, SAMPLES, VECTORS
from silver.schema import READINGS

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


def sampled(
    store: duckdb.DuckDBPyConnection, alert: Alert, rows: Rows, schema: pa.Schema = READINGS, ends: Sequence[float] = (10_000,)
) -> list[dict[str, Any]]:
    """Samples of the slices that end so many seconds behind START."""
    store.register("given", pa.Table.from_pylist(rows, schema))
    found, carried = list[dict[str, Any]](), None
    for begin, end in zip([-1000, *ends], ends, strict=False):
        of_slice, carried = samples(store, alert, "given", carried, since=at(begin), until=at(end))
        found += of_slice.select(SAMPLES.names).cast(SAMPLES).to_pylist()
    return found


def seen(rows: Rows) -> list[tuple[str, float, float, bool | None]]:
    """Entity, seconds, value and verdict."""
    return [(row["entity"], (row["at"] - START).total_seconds(), row["value"], row["verdict"]) for row in rows]


def test_a_reading_is_true_over_or_neither(store: duckdb.DuckDBPyConnection) -> None:
    rows = [reading("oven", n, value) for n, value in enumerate((300.0, 270.0, 250.0))]
    assert [row[3] for row in seen(sampled(store, HOT, rows))] == [True, False, False]
    assert [row[3] for row in seen(sampled(store, replace(HOT, recover_when="value < 260"), rows))] == [True, None, False]


def test_only_readings_of_the_metric_and_the_group_are_samples_with_their_lineage(store: duckdb.DuckDBPyConnection) -> None:
    identity = {"ingested_at": at(60), "bronze_batch": 3, "bronze_row": 14, "part": 1}
    rows = [
        reading("oven", 0, 300, **identity),
        reading("oven", 1, 300, metric="power"),
        reading("press", 2, 300, groups=["hall"]),
        reading("lamp", 3, 300, groups=None),
    ]
    (row,) = sampled(store, replace(HOT, signal=Signal("reading", "temperature", "kitchen")), rows)
    assert row == identity | {"entity": "oven", "at": at(0), "window_start": None, "window_end": None, "value": 300, "verdict": True}


@pytest.mark.parametrize("ends", [(10_000,), (15, 10_000), (10, 20, 21, 25, 10_000)])
def test_change_rate_and_previous_are_those_of_the_device_also_across_slices(store: duckdb.DuckDBPyConnection, ends: list[float]) -> None:
    rows = [reading("oven", 0, 20), reading("fridge", 5, 4), reading("oven", 10, 20.5), reading("oven", 20, 40)]
    for condition in ("rate > 1.9 and seconds = 10", "change = 19.5", "previous = 20.5"):
        found = [row[3] for row in seen(sampled(store, replace(HOT, when=condition, recover_when=f"not ({condition})"), rows, ends=ends))]
        assert found == [None, None, False, True]


LEVEL = "try_cast(attributes['level'] as double)"


def test_what_cannot_be_computed_is_neither(store: duckdb.DuckDBPyConnection) -> None:
    rows = [reading("oven", 0, 0.0), reading("oven", 1, 0.5, attributes=[("level", "high")])]
    assert [row[3] for row in seen(sampled(store, replace(HOT, when="1 / value > 1"), rows))] == [None, True]
    assert [row[3] for row in seen(sampled(store, replace(HOT, when=f"{LEVEL} > 1", recover_when=f"{LEVEL} < 0"), rows))] == [None, None]
    assert [row[3] for row in seen(sampled(store, replace(HOT, when="1 / value > 1 or seconds is null"), rows))] == [True, True]


def test_a_window_is_a_sample_at_its_end_in_its_first_revision(store: duckdb.DuckDBPyConnection) -> None:
    key = {"device_group": "kitchen", "device_id": "oven", "metric": "temperature"}
    rows = [
        key | {"window_start": at(0), "window_end": at(600), "value": 200.0, "max": 210.0, "revision": 0},
        key | {"window_start": at(0), "window_end": at(600), "value": 290.0, "max": 290.0, "revision": 1},
        key | {"window_start": at(600), "window_end": at(1200), "value": 260.0, "max": 300.0, "revision": 0},
        key | {"window_start": at(600), "window_end": at(1200), "value": 260.0, "max": 300.0, "revision": 0, "device_group": "hall"},
    ]
    alert = Alert("hot", Signal("window", "temperature", "kitchen"), "max > 280 and change = 60")
    for ends in ([10_000.0], [700.0, 10_000.0]):
        found = sampled(store, alert, rows, AGGREGATES, ends)
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
    assert seen(sampled(store, alert, rows, VECTORS)) == [("hall", 600, 3.5, True), ("hall", 1200, None, None)]
    lacking = replace(alert, when="missing_share = 0.5 and 'press-01.power' in missing")
    assert seen(sampled(store, lacking, rows, VECTORS)) == [("hall", 600, 0.0, False), ("hall", 1200, 0.5, True)]


@pytest.mark.parametrize("ends", [(1000,), (300, 1000), (50, 51, 299, 301, 620, 1000)])
def test_an_interval_without_readings_of_who_was_seen_before_counts_none(store: duckdb.DuckDBPyConnection, ends: list[float]) -> None:
    rows = [reading("oven", 10, 1), reading("oven", 299, 1), reading("fridge", 300, 1), reading("oven", 899, 1), reading("oven", 900, 1)]
    alert = Alert("silent", Signal("count", every_seconds=300), "readings = 0")
    assert seen(sampled(store, alert, rows, ends=ends)) == [
        ("oven", 300, 2, False),
        *(("fridge", 600, 1, False), ("oven", 600, 0, True)),
        *(("fridge", 900, 0, True), ("oven", 900, 1, False)),
    ]


def test_readings_are_counted_by_group_too(store: duckdb.DuckDBPyConnection) -> None:
    rows = [reading("oven", 1, 1, groups=["kitchen", "building"]), reading("fridge", 2, 1), reading("press", 3, 1, groups=["hall"])]
    by_group = Alert("silent", Signal("count", every_seconds=300, by="group"), "readings < 2")
    assert seen(sampled(store, by_group, rows, ends=[301])) == [
        ("building", 300, 1, True),
        ("hall", 300, 1, True),
        ("kitchen", 300, 2, False),
    ]
    of_kitchen = replace(by_group, signal=replace(by_group.signal, group="kitchen"))
    assert seen(sampled(store, of_kitchen, rows, ends=[301])) == [("kitchen", 300, 2, False)]


def test_the_account_of_a_source_has_shares_of_all_measurements(store: duckdb.DuckDBPyConnection) -> None:
    columns = ("source", "ingested_at", "events", "readings", "quarantined", "late", "duplicates", "conflicts")
    schema = pa.schema([(name, {0: pa.string(), 1: SAMPLES.field("at").type}.get(n, pa.int64())) for n, name in enumerate(columns)])
    rows = [dict(zip(columns, row, strict=True)) for row in [("plant", at(1), 9, 6, 1, 0, 1, 1), ("plant", at(2), 1, 0, 2, 0, 0, 0)]]
    alert = Alert("bad", Signal("account", every_seconds=60), "quarantined_share > 0.2 and events = 10")
    for ends in ([125.0], [1.5, 125.0]):
        assert seen(sampled(store, alert, rows, schema, ends)) == [("plant", 60, 0.3, True), ("plant", 120, None, False)]


DEVICES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 400), st.integers(0, 3)), max_size=25, unique_by=lambda row: row[:2])
KINDS = st.sampled_from(
    [
        Alert("a", Signal("reading", "temperature"), "change > 0", "change < 0", for_seconds=20),
        Alert("a", Signal("reading", "temperature"), "rate > 0.01 or value = 3", keep_firing_seconds=15),
        Alert("a", Signal("count", every_seconds=30), "readings = 0", for_times=2),
    ]
)


@given(KINDS, DEVICES, st.lists(st.integers(0, 400), max_size=5).map(sorted))
def test_samples_and_what_is_judged_of_them_are_the_same_however_time_is_cut(
    alert: Alert, rows: list[tuple[str, int, int]], cuts: list[int]
) -> None:
    with duckdb.connect(config={"threads": 1}) as store:
        readings = [reading(device, seconds, float(value)) for device, seconds, value in rows]
        whole, cut = (sampled(store, alert, readings, ends=ends) for ends in ([500], [*cuts, 500]))
    assert cut == whole
    judged = judge(alert, {}, pa.Table.from_pylist(whole, SAMPLES), at(500)).changes
    assert {row["entity"] for row in judged.to_pylist()} <= {"a", "b"}
