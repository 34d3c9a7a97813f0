"""Rows of Parquet files as JSON, one object a row, so that they are read as any other event behind bronze.

Written by arrow-json. Whole numbers and decimals have all their digits, floats the fewest that give the same float. Instants are ISO 8601
to the last digit: with `Z` or the offset of their column's zone, without either where the column has none. Lists, structs and maps with
text keys are nested. Bytes are hexadecimal digits. JSON has no NaN and no infinity: they are null, and a field that is null is left out.
An instant beyond the years that arrow-json knows is a text that begins with ERROR.
"""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from arro3.io import write_ndjson

from bronze.events import lines

PARQUET = "parquet"  # the payload format of files of rows
ROWS_AT_ONCE = 4_096
"""A text that stands once in a file can be the value of all its rows: more of these at once could need more memory than there is."""


def rows_of(file: Path) -> Iterator[pa.Table]:
    """The rows of a file, some at a time. Instants of 96 bits, as Spark writes them by default, are microseconds in UTC."""
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as parquet:
        columns = [parquet.schema.column(n) for n in range(len(parquet.schema))]
        of_spark = {column.path for column in columns if column.physical_type == "INT96"}
        for batch in parquet.iter_batches(ROWS_AT_ONCE):
            fields = [field.with_type(pa.timestamp("us", "UTC")) if field.name in of_spark else field for field in batch.schema]
            yield pa.Table.from_batches([batch]).cast(pa.schema(fields))


def as_json(rows: pa.Table) -> pa.BinaryArray:
    """Each row as an object; ValueError for a column that JSON cannot hold."""
    written = io.BytesIO()
    try:
        write_ndjson(rows, written)
    except Exception as error:  # arro3 raises this very class
        raise ValueError(str(error)) from None
    return lines(written.getvalue())


def numbered(pieces: Iterable[pa.Table], position: str) -> Iterator[pa.Table]:
    """ARRIVED of the rows of one file, whose position becomes `<position>/<row>`, counted from 0."""
    count = 0
    for events in pieces:
        numbers = pa.array(np.arange(count, count + len(events))).cast(pa.string())
        positions = pc.binary_join_element_wise(position, numbers, "/")
        yield events.set_column(events.column_names.index("position"), events.schema.field("position"), positions)
        count += len(events)


def unreadable(file: Path) -> str | None:
    """Why a file cannot be read to its end, if it cannot."""
    try:
        for rows in rows_of(file):
            as_json(rows)
    except (OSError, ValueError, NotImplementedError) as error:
        return f"it cannot be read as Parquet ({str(error).splitlines()[0].rstrip('.')})"
    return None
