"""Vectors of gold as matrices, entity by entity. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gold.anomalies.tail import Floats
from gold.flows.slices import micros

LARGEST = 1e100


@dataclass(frozen=True)
class Vectors:
    """Vectors of one entity in order of time. Instants in microseconds since 1970; NaN in `values`: missing, filled or no number."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    values: Floats

    def __getitem__(self, rows: slice | npt.NDArray[np.bool_]) -> "Vectors":
        return Vectors(self.starts[rows], self.ends[rows], self.values[rows])


def by_entity(vectors: pa.Table, features: Mapping[str, Sequence[str]]) -> Iterator[tuple[tuple[str, str], Vectors]]:
    """Yield the vectors of each entity in order of time, with its group and name. `features`: by group."""
    in_order = vectors.sort_by([(name, "ascending") for name in ("device_group", "entity", "window_end")])
    for group, first, last in runs(in_order["device_group"]):
        of_group = in_order.slice(first, last - first)
        values = matrix(of_group, features[group])
        starts, ends = micros(of_group["window_start"]), micros(of_group["window_end"])
        for entity, begin, end in runs(of_group["entity"]):
            yield (group, entity), Vectors(starts[begin:end], ends[begin:end], values[begin:end])


def matrix(vectors: pa.Table, features: Sequence[str]) -> Floats:
    """Return the values of vectors, a row each; NaN where a feature is missing or filled, or is no number that can be squared."""
    values = pc.fill_null(vectors["vector"].combine_chunks().flatten(), np.nan).to_numpy(zero_copy_only=False)
    values = np.where(np.abs(values) < LARGEST, values, np.nan).reshape(len(vectors), len(features))
    filled = vectors["filled"].combine_chunks()
    values[pc.list_parent_indices(filled).to_numpy(), pc.index_in(filled.flatten(), pa.array(features)).to_numpy()] = np.nan
    return values


def runs(names: pa.ChunkedArray) -> Iterator[tuple[str, int, int]]:
    """Yield the value, begin and end of each run of equal texts."""
    if not len(names):
        return
    codes = pc.dictionary_encode(names.combine_chunks()).indices.to_numpy()
    cuts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    for begin, end in pairwise(cuts):
        yield names[begin].as_py(), begin, end
