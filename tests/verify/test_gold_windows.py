"""Windows and vectors of the second evaluator against the batch twin in pandas, over random readings."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gold.spec import Group, Vector
from orchestration.conf.model import Device
from orchestration.verify.gold_windows import vectors, windows
from orchestration.verify.store import opened
from silver.spec import Aggregation, Metric
from tests import twin
from tests.lakes import assert_same
from tests.rows import at

BEGIN = at("2026-01-01T00:00:00")
METRICS = {
    metric.name: metric
    for metric in (
        *(Metric(aggregation.value, aggregation, 60 * (1 + n % 3)) for n, aggregation in enumerate(Aggregation)),
        Metric("sliding", Aggregation.AVERAGE, 180, slide_seconds=60),
        Metric("overlapping.dots", Aggregation.STDDEV, 120, slide_seconds=40),
    )
}
DEVICES = {name: Device(name, ("plant",)) for name in ("oven", "oven.2")}
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


def fill(store: duckdb.DuckDBPyConnection, readings: list[tuple[Any, ...]]) -> pd.DataFrame:
    """`counted` of the store: device, metric, microseconds after BEGIN, value; the same as a frame."""
    rows = pd.DataFrame(readings, columns=["device_id", "metric", "micros", "value"])
    rows["event_time"] = BEGIN + pd.to_timedelta(rows.pop("micros"), unit="us")
    counted = rows.assign(event_time=rows["event_time"].dt.tz_localize(None), bronze_batch=0, bronze_row=range(len(rows)), part=0)
    store.register("arriving", counted)
    micros = "event_time::timestamp as event_time"
    late = "bronze_row % 7 = 3 as is_late"
    store.execute(f"create or replace table counted as select * replace ({micros}), ['plant'] as groups, {late} from arriving")
    store.unregister("arriving")
    return rows


def frame(store: duckdb.DuckDBPyConnection, name: str) -> pd.DataFrame:
    """A table of the store, as pandas reads ours."""
    rows = store.sql(f"from {name}").df()
    instants = {column: rows[column].dt.tz_localize("UTC") for column in ("window_start", "window_end")}
    return pd.DataFrame(rows.assign(**instants))


@settings(max_examples=25, deadline=None, phases=[Phase.generate])
@given(READINGS, st.integers(-600, 900), st.integers(0, 400))
def test_windows_and_vectors_equal_those_of_the_twin(
    store: duckdb.DuckDBPyConnection, readings: list[tuple[Any, ...]], closed_until_seconds: int, max_fill_seconds: int
) -> None:
    rows = fill(store, readings)
    until = BEGIN + timedelta(seconds=closed_until_seconds)
    for entity, features in (("device", tuple(METRICS)), ("group", FEATURES)):
        group = Group("plant", tuple(METRICS), 0, "plant", Vector(entity, features, max_fill_seconds))
        assert group.vector is not None
        expected = twin.closed(twin.aggregates(rows, METRICS, group), pd.Timestamp(until))
        windows(store, group, METRICS, until)
        found = frame(store, "windows")
        assert len(found) == len(expected)
        if len(expected):
            assert_near(found, expected)
            vectors(store, group, group.vector, METRICS)
            of_twin = twin.vectors(expected, METRICS, group)
            of_twin["vector"] = of_twin["vector"].map(lambda values: np.array(values, dtype=float))
            of_store = frame(store, "vectors")
            of_store["vector"] = of_store["vector"].map(lambda values: np.ma.filled(np.ma.asarray(values, dtype=float), np.nan))
            assert_near_vectors(of_store, of_twin)


def assert_near(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Numbers to 1e-9 of the largest reading, as verify compares them; all else exactly."""
    left, right = (rows.sort_values(twin.WINDOW, ignore_index=True) for rows in (found, expected))
    assert_same(left, right, twin.WINDOW, [*twin.WINDOW, "count", "min", "max", "latest"])
    for name in ("value", "sum"):
        both = left[name].astype(float), right[name].astype(float)
        assert (both[0].isna() == both[1].isna()).all()
        assert ((both[0] - both[1]).abs().fillna(0) <= 1e-9 * (1 + left["size"])).all()


def assert_near_vectors(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    assert_same(found, expected, twin.VECTORS[:3], [name for name in twin.VECTORS if name != "vector"])
    left, right = (np.stack(rows.sort_values(twin.VECTORS[:3])["vector"].to_list()) for rows in (found, expected))
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=2e-3 * 1e-3, equal_nan=True)


def test_a_group_that_keeps_late_rows_aside_counts_neither_silver_s_nor_its_own(store: duckdb.DuckDBPyConnection) -> None:
    readings = [("oven", "sum", second * 1_000_000, float(2**n)) for n, second in enumerate((0, 1, 2, 3, 61, 62))]
    fill(store, readings)
    late_for_group = "(select 0 as bronze_batch, 1 as bronze_row, 0 as part, timestamp '2026-01-01 00:02:00' as window_end)"
    metrics = {"sum": Metric("sum", Aggregation.SUM, 120)}
    group = Group("plant", ("sum",), 0, "plant")
    windows(store, group, metrics, BEGIN + timedelta(hours=1))
    assert frame(store, "windows")["value"].tolist() == [63.0]
    windows(store, group, metrics, BEGIN + timedelta(hours=1), set_aside=late_for_group)
    assert frame(store, "windows")["value"].tolist() == [63.0 - 2 - 8]


def test_before_1970_windows_still_begin_at_multiples_of_their_step(store: duckdb.DuckDBPyConnection) -> None:
    before = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    fill(store, [("oven", "sum", int((before - BEGIN) / timedelta(microseconds=1)), 1.0)])
    windows(store, Group("plant", ("sum",), 0, "plant"), {"sum": Metric("sum", Aggregation.SUM, 60)}, BEGIN)
    assert frame(store, "windows")["window_end"].tolist() == [pd.Timestamp(0, tz="UTC")]


def test_the_store_is_a_file_so_that_the_memory_is_bounded(tmp_path: Path) -> None:
    with opened(tmp_path) as connection:
        connection.execute("create table t as from range(10)")
    assert (tmp_path / "store.duckdb").stat().st_size > 0
