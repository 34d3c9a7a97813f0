"""Rows of Arrow as JSON texts, a column at a time: row by row in Python takes ten times as long (measured).

Instants are in ISO 8601, decimals have all their digits, bytes are text with backslash escapes, NaN is "NaN" and infinity "Infinity"
(rendering.plain).
"""

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from orchestration.rendering import plain, values

NULL = "null"
ENCODER = msgspec.json.Encoder(decimal_format="number")
LAST_YEARS = 30_000
LAST_MICROS = LAST_YEARS * 31_556_952 * 10**6


def json_rows(rows: pa.Table, columns: Sequence[str] = ()) -> list[bytes]:
    """An object a row, of some columns or all: the same bytes for the same cells."""
    parts: list[pa.Array | str] = []
    for number, name in enumerate(columns or rows.column_names):
        parts += [f"{',' if number else '{'}{_encoded(name)}:", _texts(rows[name].combine_chunks())]
    texts: list[bytes] = pc.binary_join_element_wise(*parts, "}", "").cast(pa.binary()).to_pylist() if parts and len(rows) else []
    return texts


def written_instants(rows: pa.Table) -> pa.Table:
    """Return the same rows; ValueError where Arrow would write a wrong year: its own end at 32,767."""
    for field in rows.schema:
        if pa.types.is_timestamp(field.type) and len(rows):
            micros = pc.min_max(rows[field.name].cast(pa.timestamp("us", field.type.tz)).cast(pa.int64())).as_py()
            if any(end is not None and abs(end) > LAST_MICROS for end in micros.values()):
                raise ValueError(f"{field.name} lies {LAST_YEARS:,} years or more from 1970, which no text has a year for.")
    return rows


def bracketed(lists: pa.ListArray, elements: pa.Array, brackets: str, absent: str | None) -> pa.Array:
    """Join the texts of the elements of each list by commas, between brackets; `absent` stands for a list that is null."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths.cast(pa.int32()))])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, elements), ",")
    return pc.if_else(pc.is_valid(lists), pc.binary_join_element_wise(brackets[0], joined, brackets[1], ""), pa.scalar(absent, pa.string()))


def _texts(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pc.fill_null(column.cast(pa.string()), NULL)
    if pa.types.is_floating(kind):
        odd = pc.if_else(pc.is_nan(column), '"NaN"', pc.if_else(pc.greater(column, 0), '"Infinity"', '"-Infinity"'))
        return pc.fill_null(pc.if_else(pc.is_finite(column), column.cast(pa.string()), odd), NULL)
    if pa.types.is_list(kind):
        return bracketed(column, _texts(column.flatten()), "[]", NULL)
    if pa.types.is_nested(kind):
        return _each(column)
    coded = column.dictionary_encode()  # mostly few devices, metrics and instants
    return pc.fill_null(_each(coded.dictionary).take(coded.indices), NULL)


def _each(column: pa.Array) -> pa.Array:
    return pa.array([_encoded(plain(cell)) for cell in values(pa.chunked_array([column]))], pa.string())


def _encoded(cell: object) -> str:
    return ENCODER.encode(cell).decode()
