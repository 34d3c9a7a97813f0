"""Rows that need not fit in memory, appended to a table as one file, without Spark.

By Arrow's own writer: that of delta-rs holds the whole file in memory, three times at its end, and takes half as long again (measured).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from orchestration.storage.delta import committing, once
from orchestration.storage.tables import Table


def append_pieces(  # noqa: PLR0917
    table: Table,
    pieces: Iterator[pa.Table],
    app_id: str,
    version: int,
    unlike: str | None = None,
    info: Callable[[], Mapping[str, str]] | None = None,
) -> int:
    """Append rows of one partition once. Returns how many; none of a repeat with the same app id and a version that is not higher.

    A piece becomes a row group. `unlike`: a column in which no two values are alike, so that looking for repeats is in vain. `info`: what
    the commit says in its `commitInfo`, asked for when all rows are written.
    """
    with committing(table.location) as known:
        if (properties := once(known, app_id, version)) is None:
            return 0
        schema = known.schema()
        added = [*_file(table, pa.schema(schema.to_arrow()), filter(len, pieces), unlike)]
        properties.custom_metadata = dict(info()) if info else None
        known.create_write_transaction([*added], "append", schema, known.metadata().partition_columns, commit_properties=properties)
        return sum(json.loads(file.stats)["numRecords"] for file in added)


def _file(table: Table, schema: pa.Schema, pieces: Iterator[pa.Table], unlike: str | None) -> Iterator[AddAction]:
    """A data file that no version of the table has yet, or nothing where there are no rows."""
    first = next(pieces, None)
    if first is None:
        return
    of_partition = {table.partition: str(first[table.partition][0])} if table.partition else {}
    columns = pa.schema([field for field in schema if field.name not in of_partition])
    place = Path(*(f"{name}={value}" for name, value in of_partition.items()), f"part-{uuid4()}.snappy.parquet")
    file = table.location.local / place
    file.parent.mkdir(exist_ok=True)
    try:
        _write(file, columns, chain([first], pieces), unlike)
    except BaseException:  # a full disk would otherwise get fuller with each attempt
        file.unlink(missing_ok=True)
        raise
    pa.default_memory_pool().release_unused()  # Arrow would keep 110 MB of a large batch (measured)
    known = file.stat()
    stats = json.dumps(_statistics(file, table.statistics), separators=(",", ":"))
    yield AddAction(place.as_posix(), known.st_size, of_partition, int(known.st_mtime * 1000), True, stats)


def _write(file: Path, columns: pa.Schema, pieces: Iterator[pa.Table], unlike: str | None) -> None:
    repeated = True if unlike is None else [name for name in columns.names if name != unlike]
    with pq.ParquetWriter(file, columns, use_dictionary=repeated, write_statistics=repeated) as writer:
        for piece in pieces:
            writer.write_table(piece.select(columns.names).cast(columns))


def _statistics(file: Path, columns: Sequence[str]) -> dict[str, Any]:
    """As Delta's protocol has them (PROTOCOL.md, "Per-file Statistics"). No ends of a column of nulls, nor of one with very long texts."""
    footer = pq.read_metadata(file)
    place = {footer.schema.column(n).name: n for n in range(footer.num_columns)}
    groups = [footer.row_group(n) for n in range(footer.num_row_groups)]
    of_columns = {name: [group.column(place[name]) for group in groups] for name in columns}
    nulls = {name: sum(group.statistics.null_count for group in of) for name, of in of_columns.items()}
    ends = {name: of for name, groups in of_columns.items() if (of := _ends(groups)) is not None}
    return {
        "numRecords": footer.num_rows,
        "minValues": {name: least for name, (least, _) in ends.items()},
        "maxValues": {name: greatest for name, (_, greatest) in ends.items()},
        "nullCount": nulls,
    }


def _ends(groups: Sequence[pq.ColumnChunkMetaData]) -> tuple[Any, Any] | None:
    """The least and the greatest value; None where the file does not tell."""
    known = [group.statistics for group in groups if group.statistics.null_count < group.num_values]
    if not known or not all(of.has_min_max for of in known):
        return None
    if known[0].logical_type.type == "TIMESTAMP":  # Python has no instants before the year 1
        return _instant(min(of.min_raw for of in known)), _instant(max(of.max_raw for of in known))
    return min(of.min for of in known), max(of.max for of in known)


def _instant(micros: int) -> str:
    return f"{np.datetime64(micros, 'us')}Z"
