"""Vectors: the features of one entity at one window, in declared order.

Pure functions of Arrow tables. Whoever has more windows than fit in memory calls them for some entities and a range of time after another.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gold.schema import VECTORS
from gold.windows.calendar import window_of
from gold.windows.spec import Group, Vector
from silver.metric import Calendar, Metric

MICROS = 1_000_000
LONG_AGO = np.iinfo(np.int64).min // 2
CELL_BYTES = 50
"""The bytes that a feature of a vector takes for a moment, beside its name in `missing` or `filled` (measured: 68 with names of 19)."""
SCHEMA = pa.schema([field for field in VECTORS if field.name not in ("revision", "gold_batch")])
BLOCK_BYTES = 128 * 1024 * 1024
"""The bytes of vectors that are made at once, however many features they have."""


@dataclass(frozen=True)
class Shape:
    """The shape of vectors that are made together: `entity` and `fill_seconds` as declared, the number of features, the seconds of a
    window or its calendar.

    `features`: by group, in the order of the groups.
    """

    entity: str
    fill_seconds: int
    length: int
    step_seconds: int
    calendar: Calendar | None
    features: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Cells:
    """`rows`: entities at ends of windows, by entity and time, `ended` in microseconds since 1970; `values`, a row of features for each.
    `newest`: the row at or before it in which the entity last had a value of the feature; -1 for none."""

    rows: pa.Table
    ended: npt.NDArray[np.int64]
    newest: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


def vectors(aggregates: pa.Table, groups: Sequence[Group], metrics: Mapping[str, Metric]) -> pa.Table:
    """A vector at every `window_end` at which some feature of the entity has a window that ends there.

    A feature is the value of that window; else the newest earlier one, if that ended at most `max_fill_seconds` before
    (then it is named in `filled`); else null (then it is named in `missing`). A null value counts as none.
    So windows of different steps meet at their ends. `aggregates` must reach back `max_fill_seconds` before the first
    vector that matters, with one revision per window.
    """
    return pa.concat_tables([SCHEMA.empty_table(), *in_blocks(aggregates, groups, metrics)])


def in_blocks(
    aggregates: pa.Table, groups: Iterable[Group], metrics: Mapping[str, Metric], block_bytes: int = BLOCK_BYTES
) -> Iterator[pa.Table]:
    """The same vectors, by group, entity and time within groups of one shape, as many at once as take about `block_bytes`."""
    present = {*aggregates["device_group"].unique().to_pylist()}
    for shape in _shapes((group for group in groups if group.name in present), metrics):
        windows = _of_features(aggregates, shape)
        entity, ended, begins = _places(windows)
        starts = [*np.flatnonzero(begins), len(windows)]
        entity, ended = entity[begins], ended[begins]
        names = max(sum(len(name.encode()) for name in features) for features in shape.features.values())
        step = max(1, block_bytes // (CELL_BYTES * shape.length + names))
        for first in range(0, len(ended), step):
            reach = _first_that_fills(entity, ended, first, shape.fill_seconds)
            rows = windows.slice(starts[reach], starts[min(first + step, len(ended))] - starts[reach])
            yield _of_windows(rows, shape).slice(first - reach)


def features_of(group: Group, vector: Vector) -> dict[str, str]:
    """Feature to its metric. A device's name may hold a dot, so the metric is what ends the feature."""
    if vector.entity == "device":
        return {feature: feature for feature in vector.features}
    of_group = sorted(group.metrics, key=len, reverse=True)
    return {feature: next(name for name in of_group if feature.endswith(f".{name}")) for feature in vector.features}


def base_of(features: Mapping[str, str], metrics: Mapping[str, Metric]) -> Metric:
    """The first of the features' metrics with the least step: that from one vector to the next, where none is left out."""
    return min((metrics[name] for name in features.values()), key=lambda metric: metric.every_seconds)


def _shapes(groups: Iterable[Group], metrics: Mapping[str, Metric]) -> Iterable[Shape]:
    """Collect the shapes of the groups with a vector: thousands of groups may have few shapes, and are computed at once."""
    shapes: dict[tuple[str, int, int, int, Calendar | None], Shape] = {}
    for group in groups:
        if (vector := group.vector) is not None:
            base = base_of(features_of(group, vector), metrics)
            alike = vector.entity, vector.max_fill_seconds, len(vector.features), base.every_seconds, base.calendar
            shapes.setdefault(alike, Shape(*alike, {})).features[group.name] = vector.features
    return shapes.values()


def _of_windows(windows: pa.Table, shape: Shape) -> pa.Table:
    cells = _cells(windows, shape.length)
    age = cells.ended[:, None] - np.where(cells.newest >= 0, cells.ended[cells.newest], LONG_AGO)
    is_missing = age > shape.fill_seconds * MICROS
    content = np.take_along_axis(cells.values, np.maximum(cells.newest, 0), axis=0)
    offsets = np.arange(0, is_missing.size + 1, shape.length, dtype=np.int32)
    return pa.table(
        {
            "device_group": pa.array([*shape.features], pa.string()).take(cells.rows["group"]),
            "entity": cells.rows["entity"],
            "window_start": _starts(cells.rows["window_end"], shape),
            "window_end": cells.rows["window_end"],
            "vector": pa.ListArray.from_arrays(offsets, pa.array(content.ravel(), mask=is_missing.ravel())),
            "missing": _named(cells.rows, shape, is_missing),
            "filled": _named(cells.rows, shape, ~is_missing & (age > 0)),
        }
    )


def _starts(ends: pa.ChunkedArray, shape: Shape) -> pa.ChunkedArray:
    """Return the starts of windows that end then."""
    if shape.calendar is None:
        return pc.subtract(ends, pa.scalar(shape.step_seconds * MICROS, pa.duration("us")))
    unique = ends.unique()
    starts = [window_of(shape.calendar, end // MICROS - 1)[0] * MICROS for end in unique.cast(pa.int64()).to_pylist()]
    return pa.array(starts, pa.int64()).cast(ends.type).take(pc.index_in(ends, unique))


def _first_that_fills(entity: npt.NDArray[np.int64], ended: npt.NDArray[np.int64], row: int, fill_seconds: int) -> int:
    """The first row of the same entity that may fill this one, which may be this one."""
    of_entity = np.searchsorted(entity, entity[row])
    return int(of_entity + np.searchsorted(ended[of_entity:row], ended[row] - fill_seconds * MICROS))


def _places(windows: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return for windows in order: a number for the entity, which ascends, the end, and whether a vector begins with it."""
    ended = windows["window_end"].cast(pa.int64()).to_numpy()
    group, name = windows["group"].to_numpy(), windows["entity"].combine_chunks().dictionary_encode().indices.to_numpy()
    entity = np.zeros(len(windows), np.int64)
    entity[1:] = np.cumsum((np.diff(group) != 0) | (np.diff(name) != 0))
    begins = np.ones(len(windows), bool)
    begins[1:] = (np.diff(entity) != 0) | (np.diff(ended) != 0)
    return entity, ended, begins


def _of_features(aggregates: pa.Table, shape: Shape) -> pa.Table:
    """Windows of the features by group, entity and time, each with the `place` of its feature; at one place the greatest value comes last.
    `group`: the number of the group in the shape."""
    by_device = shape.entity == "device"
    of_group = aggregates["metric"] if by_device else pc.binary_join_element_wise(aggregates["device_id"], aggregates["metric"], ".")
    names = pa.array((f"{group}/{name}" for group, features in shape.features.items() for name in features), pa.string())
    number = pc.index_in(pc.binary_join_element_wise(aggregates["device_group"], of_group, "/"), names)  # no name of a group holds a slash
    group = pc.divide(number, shape.length)
    windows = pa.table(
        {
            "group": group,
            "entity": aggregates["device_id"] if by_device else aggregates["device_group"],
            "place": pc.subtract(number, pc.multiply(group, shape.length)),
            "window_end": aggregates["window_end"],
            "value": aggregates["value"],
        }
    )
    in_order = [(name, "ascending") for name in ("group", "entity", "window_end", "value")]  # NaN is greater than all, as in Spark
    return windows.filter(pc.field("place").is_valid()).sort_by(in_order)


def _cells(windows: pa.Table, features: int) -> Cells:
    entity, ended, begins = _places(windows)
    shape = int(begins.sum()), features
    values, has_value = np.zeros(shape), np.zeros(shape, bool)
    is_valid = windows["value"].is_valid().to_numpy()
    at = (np.cumsum(begins) - 1)[is_valid], windows["place"].to_numpy()[is_valid]
    values[at], has_value[at] = windows["value"].drop_null().to_numpy(), True
    newest = np.maximum.accumulate(np.where(has_value, np.arange(shape[0])[:, None], -1), axis=0)
    first_of_entity = np.searchsorted(entity[begins], entity[begins])
    newest = np.where(newest < first_of_entity[:, None], -1, newest)
    return Cells(windows.select(["group", "entity", "window_end"]).filter(pa.array(begins)), ended[begins], newest, values)


def _named(rows: pa.Table, shape: Shape, is_named: npt.NDArray[np.bool_]) -> pa.Array:
    """Lists of the features that are marked in a row."""
    offsets = np.concatenate([[0], np.cumsum(is_named.sum(axis=1))]).astype(np.int32)
    row, index = np.nonzero(is_named)
    names = pa.array((name for features in shape.features.values() for name in features), pa.string())
    return pa.ListArray.from_arrays(offsets, names.take(pa.array(rows["group"].to_numpy()[row] * shape.length + index)))
