"""Windows and vectors of the second evaluator: literal ones, and over random readings against their definition, reading by reading."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import duckdb
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gold.windows.spec import Group, Vector
from orchestration.audit.verify.gold_windows import vectors, windows
from orchestration.audit.verify.store import opened
from silver.aggregation import Aggregation
from silver.metric import CounterRule, Metric
from tests.rows import at
from tests.window_values import ODD, TYPES, WIDTH, value_of

BEGIN = at("2026-01-01T00:00:00")
METRICS = {
    metric.name: metric
    for metric in (
        *(
            Metric(kind.value, kind, 60 * (1 + n % 3), quantile=0.9 if kind is Aggregation.QUANTILE else None)
            for n, kind in enumerate(Aggregation)
        ),
        Metric("wrapping", Aggregation.COUNTER_INCREASE, 120, counter=CounterRule(wraps_at=WIDTH)),
        Metric("lower", Aggregation.QUANTILE, 60, quantile=0.05),
        Metric("sliding", Aggregation.AVERAGE, 180, slide_seconds=60),
        Metric("overlapping.dots", Aggregation.STDDEV, 120, slide_seconds=40),
    )
}
DEVICES = ("oven", "oven.2")
FEATURES = tuple(f"{device}.{metric}" for device in DEVICES for metric in METRICS)
READINGS = st.lists(
    st.tuples(
        st.sampled_from(sorted(DEVICES)),
        st.sampled_from(sorted(METRICS)),
        st.integers(-700_000_000, 700_000_000),
        st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3)),
    ),
    min_size=1,
    max_size=60,
    unique_by=lambda reading: reading[:3],
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with opened(tmp_path_factory.mktemp("store")) as connection:
        yield connection


def fill(store: duckdb.DuckDBPyConnection, readings: list[tuple[Any, ...]]) -> None:
    """`counted` of the store: device, metric, microseconds after BEGIN, value."""
    rows = pd.DataFrame(readings, columns=["device_id", "metric", "micros", "value"])
    rows["event_time"] = BEGIN + pd.to_timedelta(rows.pop("micros"), unit="us")
    counted = rows.assign(event_time=rows["event_time"].dt.tz_localize(None), bronze_batch=0, bronze_row=range(len(rows)), part=0)
    store.register("arriving", counted)
    micros = "event_time::timestamp as event_time"
    late = "bronze_row % 7 = 3 as is_late"
    store.execute(f"create or replace table counted as select * replace ({micros}), ['plant'] as groups, {late} from arriving")
    store.unregister("arriving")


def rows_of(store: duckdb.DuckDBPyConnection, name: str) -> list[dict[str, Any]]:
    """A table of the store, with instants as seconds after BEGIN."""
    begin = f"timestamp '{BEGIN:%Y-%m-%d %H:%M:%S}'"
    instants = ", ".join(f"(epoch_us({column}) - epoch_us({begin})) / 1e6 as {column}" for column in ("window_start", "window_end"))
    rows: list[dict[str, Any]] = store.sql(f"select * replace ({instants}) from {name}").to_arrow_table().to_pylist()
    return rows


Seconds = float
Cells = tuple[str, str, Seconds]
"""Device, metric, and seconds after BEGIN at which the window ends."""


def by_definition(readings: list[tuple[Any, ...]], closed_until: int) -> dict[Cells, list[tuple[Seconds, float]]]:
    """Readings of every closed window in the order of their times, as seconds after its begin. A window ends at a multiple of the slide and
    does not hold its end."""
    values: dict[Cells, list[tuple[Seconds, float]]] = {}
    for device, metric, micros, value in sorted(readings, key=lambda reading: reading[2]):
        step, slide = METRICS[metric].window_seconds, METRICS[metric].slide_seconds or METRICS[metric].window_seconds
        first = (micros // (slide * 1_000_000) + 1) * slide
        for end in range(first, first + step, slide):
            if end <= closed_until:
                values.setdefault((device, metric, end), []).append((micros / 1e6 - end + step, value))
        for end in range(first, closed_until + 1, slide) if METRICS[metric].aggregation is Aggregation.TIME_WEIGHTED_AVERAGE else ():
            values.setdefault((device, metric, end), [])  # a day is longer than all of this: the value holds
    return values


def vector_by_definition(of_entity: dict[tuple[str, Seconds], float | None], features: Sequence[str], end: Seconds, fill: int) -> Any:
    """Vector, missing and filled. `of_entity`: values by feature and end of the window. A feature is its newest value, if that ended at
    `end` or at most `fill` before."""
    newest = {
        feature: max(
            (at for (name, at), value in of_entity.items() if name == feature and at <= end and value is not None), default=-math.inf
        )
        for feature in features
    }
    fresh = {feature: at for feature, at in newest.items() if end - at <= fill}
    vector = [of_entity[feature, fresh[feature]] if feature in fresh else None for feature in features]
    return vector, [name for name in features if name not in fresh], [name for name in features if fresh.get(name, end) < end]


@settings(phases=[Phase.generate])
@given(READINGS, st.integers(-600, 900))
def test_windows_are_what_their_definition_says(
    store: duckdb.DuckDBPyConnection, readings: list[tuple[Any, ...]], closed_until: int
) -> None:
    fill(store, readings)
    windows(store, Group("plant", tuple(METRICS), 0, "plant"), METRICS, BEGIN + timedelta(seconds=closed_until))
    expected = by_definition(readings, closed_until)
    rows = {(row["device_id"], row["metric"], row["window_end"]): row for row in rows_of(store, "windows")}
    assert rows.keys() == expected.keys()
    for cell, row in rows.items():
        metric, values = METRICS[cell[1]], [value for _, value in expected[cell]]
        assert row["window_start"] == cell[2] - metric.window_seconds
        of_values: list[float | None] = [len(values), min(values), max(values), values[-1]] if values else [0, None, None, None]
        assert [row[name] for name in ("count", "min", "max", "latest")] == of_values
        # Sums in another order: to 1e-9 of the largest reading, as verify compares them.
        assert row["sum"] == (pytest.approx(math.fsum(values), abs=1e-9 * (1 + row["size"])) if values else None)
        start = cell[2] - metric.step_seconds
        before = [
            (at / 1e6 - start, value) for *of, at, value in sorted(readings, key=itemgetter(2)) if (*of,) == cell[:2] and at < start * 1e6
        ]
        assert row["value"] == pytest.approx(value_of(metric, expected[cell], before), abs=1e-9 * (1 + row["value_size"]))


@settings(phases=[Phase.generate])
@given(READINGS, st.integers(-600, 900), st.integers(0, 400), st.sampled_from(["device", "group"]))
def test_vectors_are_what_their_definition_says(
    store: duckdb.DuckDBPyConnection, readings: list[tuple[Any, ...]], closed_until: int, max_fill: int, entity: Literal["device", "group"]
) -> None:
    fill(store, readings)
    vector = Vector(entity, tuple(METRICS) if entity == "device" else FEATURES, max_fill)
    group = Group("plant", tuple(METRICS), 0, "plant", vector)
    windows(store, group, METRICS, BEGIN + timedelta(seconds=closed_until))
    vectors(store, group, vector, METRICS)
    of_entities: dict[str, dict[tuple[str, Seconds], float | None]] = {}
    for row in rows_of(store, "windows"):
        device, metric = row["device_id"], row["metric"]
        name, feature = (device, metric) if entity == "device" else ("plant", f"{device}.{metric}")
        of_entities.setdefault(name, {})[feature, row["window_end"]] = row["value"]
    due = {(name, end): of_entity for name, of_entity in of_entities.items() for _, end in of_entity}
    rows = {(row["entity"], row["window_end"]): row for row in rows_of(store, "vectors")}
    assert rows.keys() == due.keys()
    for (name, end), row in rows.items():
        expected = vector_by_definition(due[name, end], vector.features, end, max_fill)
        assert (row["vector"], row["missing"], row["filled"]) == expected
        assert row["window_start"] == end - 40  # the shortest slide


def test_counters_and_angles_in_all_their_oddness_are_what_their_definition_says(store: duckdb.DuckDBPyConnection) -> None:
    fill(store, [(device, metric, round(at * 1e6), value) for device, of in ODD.items() for metric in TYPES for at, value in of])
    windows(store, Group("plant", tuple(TYPES), 0, "plant"), TYPES, BEGIN + timedelta(seconds=60))
    found = rows_of(store, "windows")
    assert len(found) == len(ODD) * len(TYPES)
    for row in found:
        expected = value_of(TYPES[row["metric"]], ODD[row["device_id"]])
        assert row["value"] == pytest.approx(expected, abs=1e-9 * (1 + row["value_size"])), (row["metric"], ODD[row["device_id"]])


SMALL = {"heat": Metric("heat", Aggregation.LATEST, 60), "noise": Metric("noise", Aggregation.STDDEV, 120)}


def small_vectors(store: duckdb.DuckDBPyConnection, vector: Vector, *rows: tuple[str, str, float, float]) -> list[tuple[Any, ...]]:
    """Entity, seconds at which its window ends, vector, missing and filled of readings: device, metric, seconds, value."""
    fill(store, [(device, metric, int(after * 1_000_000), value) for device, metric, after, value in rows])
    group = Group("plant", ("heat", "noise"), 0, "plant", vector)
    windows(store, group, SMALL, BEGIN + timedelta(hours=1))
    vectors(store, group, vector, SMALL)
    in_order = sorted(rows_of(store, "vectors"), key=lambda row: (row["entity"], row["window_end"]))
    return [tuple(row[name] for name in ("entity", "window_end", "vector", "missing", "filled")) for row in in_order]


def test_a_feature_is_fresh_or_carried_forward_or_missing(store: duckdb.DuckDBPyConnection) -> None:
    rows = [("oven", "heat", 0.0, 1.0), ("oven", "heat", 180.0, 4.0), ("oven", "noise", 0.0, 2.0), ("oven", "noise", 1.0, 4.0)]
    assert small_vectors(store, Vector("device", ("noise", "heat"), 60), *rows) == [
        ("oven", 60, [None, 1.0], ["noise"], []),
        ("oven", 120, [math.sqrt(2), 1.0], [], ["heat"]),  # heat ended 60 s before: at most 60 s is not too old
        ("oven", 240, [None, 4.0], ["noise"], []),  # noise ended 120 s before
    ]


def test_a_window_without_a_value_makes_a_vector_due_and_gives_it_nothing(store: duckdb.DuckDBPyConnection) -> None:
    rows = [("oven", "noise", 0.0, 2.0), ("oven", "noise", 1.0, 2.0), ("oven", "noise", 120.0, 9.0), ("oven", "heat", 0.0, 7.0)]
    assert small_vectors(store, Vector("device", ("noise", "heat"), 120), *rows)[1:] == [
        ("oven", 120, [0.0, 7.0], [], ["heat"]),
        ("oven", 240, [0.0, None], ["heat"], ["noise"]),
    ]


def test_a_group_vector_takes_its_features_from_several_devices(store: duckdb.DuckDBPyConnection) -> None:
    rows = [("oven.1", "heat", 0.0, 1.0), ("pump", "heat", 60.0, 2.0), ("pump", "noise", 60.0, 9.0), ("other", "heat", 300.0, 1.0)]
    assert small_vectors(store, Vector("group", ("pump.heat", "oven.1.heat"), 60), *rows) == [
        ("plant", 60, [None, 1.0], ["pump.heat"], []),
        ("plant", 120, [2.0, 1.0], [], ["oven.1.heat"]),
    ]


def test_readings_of_a_group_are_those_of_its_devices_and_metrics(store: duckdb.DuckDBPyConnection) -> None:
    fill(store, [("oven", "heat", 0, 1.0), ("oven", "sum", 0, 1.0)])
    store.execute("insert into counted select * replace (['other'] as groups, 'pump' as device_id) from counted where metric = 'heat'")
    windows(store, Group("plant", ("heat",), 0, "plant"), SMALL, BEGIN + timedelta(hours=1))
    assert store.execute("select device_id, metric from windows").fetchall() == [("oven", "heat")]


def test_a_window_is_closed_when_the_watermark_is_at_its_end(store: duckdb.DuckDBPyConnection) -> None:
    fill(store, [("oven", "heat", after * 1_000_000, 1.0) for after in (0, 60, 130)])
    group = Group("plant", ("heat",), 0, "plant")
    for watermark, count in ((60, 1), (119.999999, 1), (120, 2)):
        windows(store, group, SMALL, BEGIN + timedelta(seconds=watermark))
        assert len(rows_of(store, "windows")) == count


def test_a_group_that_keeps_late_rows_aside_counts_neither_silver_s_nor_its_own(store: duckdb.DuckDBPyConnection) -> None:
    readings = [("oven", "sum", second * 1_000_000, float(2**n)) for n, second in enumerate((0, 1, 2, 3, 61, 62))]
    fill(store, readings)
    late_for_group = "(select 0 as bronze_batch, 1 as bronze_row, 0 as part, timestamp '2026-01-01 00:02:00' as window_end)"
    metrics = {"sum": Metric("sum", Aggregation.SUM, 120)}
    group = Group("plant", ("sum",), 0, "plant")
    windows(store, group, metrics, BEGIN + timedelta(hours=1))
    assert [row["value"] for row in rows_of(store, "windows")] == [63.0]
    windows(store, group, metrics, BEGIN + timedelta(hours=1), set_aside=late_for_group)
    assert [row["value"] for row in rows_of(store, "windows")] == [63.0 - 2 - 8]


def test_before_1970_windows_still_begin_at_multiples_of_their_step(store: duckdb.DuckDBPyConnection) -> None:
    before = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    fill(store, [("oven", "sum", int((before - BEGIN) / timedelta(microseconds=1)), 1.0)])
    windows(store, Group("plant", ("sum",), 0, "plant"), {"sum": Metric("sum", Aggregation.SUM, 60)}, BEGIN)
    assert [row["window_end"] for row in rows_of(store, "windows")] == [-BEGIN.timestamp()]


def test_the_store_is_a_file_so_that_the_memory_is_bounded(tmp_path: Path) -> None:
    with opened(tmp_path) as connection:
        connection.execute("create table t as from range(10)")
    assert (tmp_path / "store.duckdb").stat().st_size > 0
