"""Vectors of windows that fit in memory, as gold/vectors.py has them of any number, in Arrow: Spark would plan for nearly all of the time.

Pure. The rows are the same; a test compares them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gold.spec import Group, Vector
from gold.vectors import base_seconds, features_of
from silver.spec import Metric

MICROS = 1_000_000
LONG_AGO = np.iinfo(np.int64).min // 2
CELL_BYTES = 50
"""What a feature of a vector takes for a moment, beside its name in `missing` or `filled` (measured: 68 with names of 19)."""


@dataclass(frozen=True)
class Cells:
    """`rows`: entities at ends of windows, by entity and time, `ended` in microseconds since 1970; `values`, a row of features for each.

    `newest`: the row at or before it in which the entity last had a value of the feature; -1 for none.
    """

    rows: pa.Table
    ended: npt.NDArray[np.int64]
    newest: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


def vectors(aggregates: pa.Table, group: Group, vector: Vector, metrics: Mapping[str, Metric]) -> pa.Table:
    """See gold.vectors.vectors."""
    features = features_of(group, vector)
    cells = _cells(_of_features(aggregates, group, vector, [*features]), len(features))
    age = cells.ended[:, None] - np.where(cells.newest >= 0, cells.ended[cells.newest], LONG_AGO)
    is_missing = age > vector.max_fill_seconds * MICROS
    content = np.take_along_axis(cells.values, np.maximum(cells.newest, 0), axis=0)
    offsets = np.arange(0, is_missing.size + 1, len(features), dtype=np.int32)
    base = pa.scalar(base_seconds(features, metrics) * MICROS, pa.duration("us"))
    return pa.table(
        {
            "entity": cells.rows["entity"],
            "window_start": pc.subtract(cells.rows["window_end"], base),
            "window_end": cells.rows["window_end"],
            "vector": pa.ListArray.from_arrays(offsets, pa.array(content.ravel(), mask=is_missing.ravel())),
            "missing": _named([*features], is_missing),
            "filled": _named([*features], ~is_missing & (age > 0)),
        }
    )


def size(windows: pa.Table, group: Group, vector: Vector) -> int:
    """Bytes that vectors of these windows take for a moment, at most: however few the windows are, each vector has all features."""
    key = ["window_end"] if vector.entity == "group" else ["device_id", "window_end"]
    rows: int = windows.select(key).group_by(key).aggregate([]).num_rows
    return rows * size_of_one(group, vector)


def size_of_one(group: Group, vector: Vector) -> int:
    """The same of one vector."""
    return sum(CELL_BYTES + len(name.encode()) for name in features_of(group, vector))


def _of_features(aggregates: pa.Table, group: Group, vector: Vector, features: list[str]) -> pa.Table:
    """Windows of the features by entity and time, each with the `place` of its feature; at one place the greatest value comes last."""
    by_device = vector.entity == "device"
    feature = aggregates["metric"] if by_device else pc.binary_join_element_wise(aggregates["device_id"], aggregates["metric"], ".")
    windows = pa.table(
        {
            "entity": aggregates["device_id"] if by_device else pa.repeat(group.name, len(aggregates)),
            "place": pc.index_in(feature, pa.array(features, pa.string())),
            "window_end": aggregates["window_end"],
            "value": aggregates["value"],
        }
    )
    in_order = [(name, "ascending") for name in ("entity", "window_end", "value")]  # NaN is greater than all, as in Spark
    return windows.filter(pc.field("place").is_valid()).sort_by(in_order)


def _cells(windows: pa.Table, features: int) -> Cells:
    entity = windows["entity"].combine_chunks().dictionary_encode().indices.to_numpy()
    ended = windows["window_end"].cast(pa.int64()).to_numpy()
    begins = np.ones(len(windows), bool)
    begins[1:] = (np.diff(entity) != 0) | (np.diff(ended) != 0)
    shape = int(begins.sum()), features
    values, has_value = np.zeros(shape), np.zeros(shape, bool)
    known = windows["value"].is_valid().to_numpy()
    at = (np.cumsum(begins) - 1)[known], windows["place"].to_numpy()[known]
    values[at], has_value[at] = windows["value"].drop_null().to_numpy(), True
    newest = np.maximum.accumulate(np.where(has_value, np.arange(shape[0])[:, None], -1), axis=0)
    first_of_entity = np.searchsorted(entity[begins], entity[begins])
    newest = np.where(newest < first_of_entity[:, None], -1, newest)
    return Cells(windows.select(["entity", "window_end"]).filter(pa.array(begins)), ended[begins], newest, values)


def _named(features: list[str], is_named: npt.NDArray[np.bool_]) -> pa.Array:
    """Lists of the features that are marked in a row."""
    offsets = np.concatenate([[0], np.cumsum(is_named.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(features, pa.string()).take(pa.array(np.nonzero(is_named)[1])))
