"""Delta tables at one version, as Arrow, without Spark: deletion vectors are honoured, and a stream of batches bounds the memory."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from orchestration.location import Location
from orchestration.storage.delta import ask, open_table

INSTANT = pa.timestamp("us")
"""In UTC. Without a zone, because DuckDB compares instants with one only with an extension that it would have to download."""


def batches(path: Location, version: int, columns: Sequence[str], where: str = "true") -> pa.RecordBatchReader:
    """Rows of a table as it was at that version; `where` is SQL."""
    query = f"select {', '.join(columns)} from recorded where {where}"
    reader = ask(query, {"recorded": open_table(path, version)})
    schema = plain_schema(reader.schema)
    return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in reader))


def chunks(reader: pa.RecordBatchReader, rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of at least so many, but for the last."""
    held: list[pa.RecordBatch] = []
    for batch in reader:
        held.append(batch)
        if sum(batch.num_rows for batch in held) >= rows:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def plain(rows: pa.Table) -> pa.Table:
    """The same rows, instants as INSTANT."""
    return rows.cast(plain_schema(rows.schema))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Types that every reader of Arrow knows."""
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in schema])


def _plain(of: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(of):
        return INSTANT
    if pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_list_view(of):
        return pa.list_(_plain(of.value_type))
    if pa.types.is_string_view(of) or pa.types.is_large_string(of):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(of) or pa.types.is_large_binary(of) else of
