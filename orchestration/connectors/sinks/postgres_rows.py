"""Rows of Arrow as Postgres takes them: the types of columns, and CSV for COPY."""

import io
import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from orchestration.errors import TidemarkError

TYPES = {
    pa.string(): "text",
    pa.large_string(): "text",
    pa.binary(): "bytea",
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
    pa.timestamp("us"): "timestamp without time zone",
}
NUL, NUL_IN_JSON, REPLACEMENT = "\x00", "\\u0000", "\ufffd"
WITHOUT_HEADER = pyarrow.csv.WriteOptions(include_header=False)


def column_types(table: str, schema: pa.Schema) -> dict[str, str]:
    """Return the Postgres type of each column, in the order of the schema. TidemarkError for a type that Postgres does not have."""
    return {field.name: _type_of(table, field.name, field.type) for field in schema}


def as_csv(rows: pa.Table) -> bytes:
    """Without a header. An empty text is in quotes, null is not there at all."""
    plain = pa.Table.from_arrays([_as_text(column.combine_chunks()) for column in rows.columns], rows.column_names)
    out = io.BytesIO()
    pyarrow.csv.write_csv(plain, out, WITHOUT_HEADER)
    return out.getvalue()


def _type_of(table: str, name: str, kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"{_type_of(table, name, kind.value_type)}[]"
    if pa.types.is_map(kind):
        return "jsonb"
    if pa.types.is_decimal(kind):
        return "numeric"
    if kind not in TYPES:
        raise TidemarkError(f"column {name} of {table} is {kind}, for which Postgres has no type here; leave it out of the mart.")
    return TYPES[kind]


def _as_text(column: pa.Array) -> pa.Array:
    """Lists, bytes and texts as COPY reads them; others as they are."""
    if pa.types.is_list(column.type):
        return _as_array(column)
    if pa.types.is_map(column.type):
        maps = pa.array([None if cell is None else json.dumps(dict(cell), ensure_ascii=False) for cell in column.to_pylist()], pa.string())
        return pc.replace_substring(maps, NUL_IN_JSON, REPLACEMENT)
    if pa.types.is_binary(column.type):
        return pa.array([None if value is None else f"\\x{value.hex()}" for value in column.to_pylist()], pa.string())
    return pc.replace_substring(column, NUL, REPLACEMENT) if pa.types.is_string(column.type) else column


def _as_array(lists: pa.ListArray) -> pa.Array:
    """Such as {1.5,NULL,nan} and {"a","say \\"b\\""}."""
    values = lists.flatten()
    texts = _as_text(values).cast(pa.string())
    if pa.types.is_string(values.type):
        escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
        texts = pc.binary_join_element_wise('"', escaped, '"', "")
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, pc.fill_null(texts, "NULL")), ",")
    return pc.if_else(pc.is_valid(lists), pc.binary_join_element_wise("{", joined, "}", ""), pa.scalar(None, pa.string()))
