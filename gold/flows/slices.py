"""Slices of event time: what flows of conf/flows.yml are computed from, one after another, each once.

Silver turns away what is behind its watermark, so readings before that instant are final: they are all there, and can be put in order.
A slice holds those from the end of the slice before up to that instant. What a flow needs of earlier slices it carries. So its rows do not
depend on how time was cut, and a batch job is the same function of one slice.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bronze.schema import INSTANT

THE_BEGINNING = -(2**60)
"""Before every instant, in microseconds since 1970."""
READING = pa.schema(
    [
        *(("device_id", pa.string()), ("zone", pa.string()), ("metric", pa.string()), ("event_time", INSTANT), ("value", pa.float64())),
        *(("bronze_batch", pa.int64()), ("bronze_row", pa.int64()), ("part", pa.int32())),
    ]
)
"""The columns of a reading that flows take. After them come their predicates: booleans `fits_0`, `fits_1` and so on; null is false."""
LINEAGE = ("bronze_batch", "bronze_row", "part")
Instants = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Slice:
    """Readings of a flow from `after` (included) to `until` (not), microseconds since 1970, and what the slice before left."""

    carried: pa.Table
    readings: pa.Table
    after: int
    until: int


@dataclass(frozen=True)
class Stepped:
    """`rows` for the table of the flow, without its name; `carried` for the next slice. `rings_at`: the wall clock, in microseconds since
    1970, at which time alone has the next rows."""

    rows: pa.Table
    carried: pa.Table
    rings_at: int | None = None


def without_flow(schema: pa.Schema) -> pa.Schema:
    """Columns of rows of one flow."""
    return schema.remove(schema.get_field_index("flow"))


def with_predicates(count: int) -> pa.Schema:
    """READING and so many predicates."""
    return pa.schema([*READING, *((f"fits_{at}", pa.bool_()) for at in range(count))])


def micros(column: pa.ChunkedArray) -> Instants:
    """Instants as microseconds since 1970."""
    numbers: Instants = column.cast(pa.int64()).to_numpy()
    return numbers


def instants(numbers: Instants) -> pa.Array:
    return pa.array(numbers, pa.int64()).cast(INSTANT)


def codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A number for each text; -1 for null."""
    indices = pc.fill_null(column.combine_chunks().dictionary_encode().indices, -1)
    numbers: npt.NDArray[np.int64] = indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def fits(readings: pa.Table, at: int) -> npt.NDArray[np.bool_]:
    """Say for each reading whether it meets a predicate."""
    met: npt.NDArray[np.bool_] = pc.fill_null(readings[f"fits_{at}"], False).to_numpy()
    return met
