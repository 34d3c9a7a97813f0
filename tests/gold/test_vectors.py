"""Vectors: declared order, forward fill, missing features, windows of different steps."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gold.windows.spec import Group, Vector
from gold.windows.vectors import features_of, in_blocks, vectors
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.rows import at

METRICS = {"t": Metric("t", Aggregation.AVERAGE, 600), "p": Metric("p", Aggregation.SUM, 3600), "h": Metric("h", Aggregation.STDDEV, 600)}
SCHEMA = pa.schema(
    [("device_id", pa.string()), ("metric", pa.string()), ("window_end", pa.timestamp("us", "UTC")), ("value", pa.float64())]
)
Window = tuple[str, str, datetime, float | None]
ENDS: list[datetime] = [at("12:00") + timedelta(minutes=10 * n) for n in range(8)]
KEYS = st.tuples(st.sampled_from(["a", "b.t", "c"]), st.sampled_from(["t", "p", "h", "x"]), st.sampled_from(ENDS))
WINDOWS = st.dictionaries(KEYS, st.sampled_from([1.5, -0.0, 2.5, math.nan, math.inf, None]), max_size=40)
VECTORS = [Vector("device", ("t", "p", "h"), 1200), Vector("device", ("h",)), Vector("group", ("b.t.t", "a.p", "c.h", "a.t"), 1800)]


def of_kitchen(vector: Vector) -> Group:
    return Group("kitchen", tuple(METRICS), 600, "kitchen", vector)


def table(windows: Sequence[Window], group: str = "kitchen") -> pa.Table:
    rows = [dict(zip(SCHEMA.names, window, strict=True)) for window in windows]
    return pa.Table.from_pylist(rows, SCHEMA).add_column(0, "device_group", pa.array([group] * len(rows), pa.string()))


def made(windows: Sequence[Window], vector: Vector) -> list[tuple[Any, ...]]:
    rows = vectors(table(windows), [of_kitchen(vector)], METRICS).to_pylist()
    return [(row["entity"], row["window_end"].astimezone(UTC), row["vector"], row["missing"], row["filled"]) for row in rows]


def one_by_one(windows: dict[tuple[str, str, datetime], float | None], vector: Vector) -> list[tuple[Any, ...]]:
    """The same by looking for each feature of each vector."""
    features = features_of(of_kitchen(vector), vector)
    values: dict[tuple[str, str, datetime], float | None] = {}
    for (device, metric, end), value in windows.items():
        entity, feature = (device, metric) if vector.entity == "device" else ("kitchen", f"{device}.{metric}")
        if feature in features:
            values[entity, feature, end] = value
    rows = []
    for entity, end in sorted({(entity, end) for entity, _, end in values}):
        earlier = [end - timedelta(seconds=age) for age in range(0, vector.max_fill_seconds + 1, 600)]
        ends = [next((at for at in earlier if values.get((entity, feature, at)) is not None), None) for feature in features]
        vector_of = [None if at is None else values[entity, feature, at] for feature, at in zip(features, ends, strict=True)]
        missing = [feature for feature, at in zip(features, ends, strict=True) if at is None]
        filled = [feature for feature, at in zip(features, ends, strict=True) if at not in {None, end}]
        rows.append((entity, end, vector_of, missing, filled))
    return rows


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector.entity}-{vector.max_fill_seconds}")
@given(windows=WINDOWS)
def test_vectors_of_any_windows(vector: Vector, windows: dict[tuple[str, str, datetime], float | None]) -> None:
    rows = [(*key, value) for key, value in windows.items()]
    assert repr(made(rows, vector)) == repr(one_by_one(windows, vector))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector.entity}-{vector.max_fill_seconds}")
@given(windows=WINDOWS, block_bytes=st.integers(1, 1000))
def test_blocks_of_vectors_hold_the_same_rows(
    vector: Vector, windows: dict[tuple[str, str, datetime], float | None], block_bytes: int
) -> None:
    rows = table([(*key, value) for key, value in windows.items()])
    whole = vectors(rows, [of_kitchen(vector)], METRICS)
    blocks = [*in_blocks(rows, [of_kitchen(vector)], METRICS, block_bytes)]
    assert repr([row for block in blocks for row in block.to_pylist()]) == repr(whole.to_pylist())
    largest = max(1, block_bytes // sum(50 + len(name) for name in vector.features))
    assert all(len(block) <= largest for block in blocks)


def test_features_stand_in_declared_order_and_a_missing_one_is_null_and_named() -> None:
    windows: list[Window] = [("oven", "t", at("12:00"), 1.0), ("oven", "p", at("12:00"), 2.0)]
    assert made(windows, Vector("device", ("p", "h", "t"))) == [("oven", at("12:00"), [2.0, None, 1.0], ["h"], [])]


def test_a_feature_is_carried_forward_for_max_fill_seconds_and_no_longer() -> None:
    windows: list[Window] = [
        ("oven", "p", at("12:00"), 5.0),
        *(("oven", "t", at(f"12:{minute}"), 1.0) for minute in ("00", "10", "20", "30")),
    ]
    rows = made(windows, Vector("device", ("t", "p"), max_fill_seconds=1200))
    assert [(end, vector, missing, filled) for _, end, vector, missing, filled in rows] == [
        (at("12:00"), [1.0, 5.0], [], []),
        (at("12:10"), [1.0, 5.0], [], ["p"]),
        (at("12:20"), [1.0, 5.0], [], ["p"]),
        (at("12:30"), [1.0, None], ["p"], []),
    ]


def test_a_null_value_counts_as_none_and_is_filled() -> None:
    windows: list[Window] = [("oven", "h", at("12:00"), 0.5), ("oven", "h", at("12:10"), None)]
    rows = made(windows, Vector("device", ("h",), max_fill_seconds=600))
    assert [(vector, filled) for _, _, vector, _, filled in rows] == [([0.5], []), ([0.5], ["h"])]


def test_another_device_neither_fills_nor_shares_a_vector() -> None:
    windows: list[Window] = [("oven", "t", at("12:00"), 1.0), ("fridge", "t", at("12:10"), 2.0)]
    assert made(windows, Vector("device", ("t",), max_fill_seconds=600)) == [
        ("fridge", at("12:10"), [2.0], [], []),
        ("oven", at("12:00"), [1.0], [], []),
    ]


def test_a_group_has_one_vector_with_features_of_named_devices() -> None:
    windows: list[Window] = [("oven", "t", at("12:00"), 1.0), ("fri.dge", "t", at("12:00"), 2.0), ("other", "t", at("12:00"), 9.0)]
    rows = made(windows, Vector("group", ("fri.dge.t", "oven.t", "oven.p")))
    assert rows == [("kitchen", at("12:00"), [2.0, 1.0, None], ["oven.p"], [])]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector.entity}-{vector.max_fill_seconds}")
@given(windows=WINDOWS, of_others=WINDOWS)
def test_groups_that_are_made_together_have_the_vectors_of_each_alone(
    vector: Vector, windows: dict[tuple[str, str, datetime], float | None], of_others: dict[tuple[str, str, datetime], float | None]
) -> None:
    turned = replace(vector, features=vector.features[::-1])
    shorter = Vector("device", ("p",), 600)
    groups = [
        replace(of_kitchen(of), name=name) for name, of in (("kitchen", vector), ("bar", turned), ("cellar", shorter), ("attic", vector))
    ]
    of_groups = {"kitchen": windows, "bar": of_others, "cellar": windows}
    rows = {name: table([(*key, value) for key, value in of.items()], name) for name, of in of_groups.items()}
    alone = [vectors(rows[group.name], [group], METRICS) for group in groups if group.name in rows]
    together = vectors(pa.concat_tables(rows.values()), groups, METRICS)
    assert sorted(map(str, together.to_pylist())) == sorted(str(row) for of_group in alone for row in of_group.to_pylist())
