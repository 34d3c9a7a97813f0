"""Data files of a table: whoever computes rows writes them, this process or a task of Spark. No reader sees one before a commit names it.

By Arrow's own writer: that of delta-rs holds the whole file in memory, three times at its end, and takes half as long again (measured).
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.location import Location
from orchestration.storage.held_leases import lease_above


@dataclass(frozen=True)
class FileShape:
    """Form of a table's files. `statistics`: columns of which a commit tells the ends. `partition`: the column that is a folder."""

    folder: Location
    columns: pa.Schema
    statistics: tuple[str, ...]
    partition: str | None = None


@dataclass(frozen=True)
class DataFile:
    """A file below the folder of its table, and what a commit says of it. `count`: of rows. `partition`: column and value."""

    path: str
    size: int
    modified_ms: int
    statistics: str
    count: int
    partition: Mapping[str, str] = field(default_factory=dict)


def write_file(shape: FileShape, pieces: Iterator[pa.Table]) -> DataFile | None:
    """Write rows of one partition, each piece a row group, as a file that no version of the table has yet; None where there are no rows.

    HeldError where another process has taken over the lease: nobody would remove the file soon. A task of Spark cannot know.
    """
    if lease := lease_above(shape.folder):
        lease.confirm()
    filled = filter(len, pieces)
    first = next(filled, None)
    if first is None:
        return None
    of_partition = {shape.partition: str(first[shape.partition][0])} if shape.partition else {}
    path = PurePosixPath(*(f"{name}={value}" for name, value in of_partition.items()), f"part-{uuid4()}.snappy.parquet").as_posix()
    columns = pa.schema([field for field in shape.columns if field.name not in of_partition])
    try:
        footer, size = _write(shape.folder / path, columns, chain([first], filled))
    except BaseException:  # a full disk would otherwise get fuller with each attempt
        (shape.folder / path).delete()
        raise
    pa.default_memory_pool().release_unused()  # Arrow would keep 110 MB of a large batch (measured)
    return _described(shape, path, footer, size, of_partition)


def move_in(shape: FileShape, file: Path) -> DataFile | None:
    """A file that Spark wrote elsewhere on the disk, to the folder of a table without partitions; None where it has no rows."""
    footer, size = pq.read_metadata(file), file.stat().st_size
    file.replace(shape.folder.local / file.name)
    return _described(shape, file.name, footer, size, {}) if footer.num_rows else None


def _described(shape: FileShape, path: str, footer: pq.FileMetaData, size: int, of_partition: Mapping[str, str]) -> DataFile:
    summary = json.dumps(_statistics(footer, shape.statistics), separators=(",", ":"))
    return DataFile(path, size, int(time.time() * 1000), summary, footer.num_rows, of_partition)


def _write(file: Location, columns: pa.Schema, pieces: Iterator[pa.Table]) -> tuple[pq.FileMetaData, int]:
    """Write a file, and return its footer and its size."""
    # No two payloads are alike: looking for repeats is in vain.
    repeated, footers = [field.name for field in columns if field.type != pa.binary()], list[pq.FileMetaData]()
    with file.open_output() as output:
        with pq.ParquetWriter(output, columns, use_dictionary=repeated, write_statistics=repeated, metadata_collector=footers) as writer:
            for piece in pieces:
                writer.write_table(piece.select(columns.names).cast(columns))
        return footers[0], output.tell()


def _statistics(footer: pq.FileMetaData, columns: Sequence[str]) -> dict[str, Any]:
    """Sum up a file as Delta's PROTOCOL.md has it ("Per-file Statistics"). A column of nulls, or with very long texts, has no ends."""
    position = {footer.schema.column(n).path: n for n in range(footer.num_columns)}
    groups = [footer.row_group(n) for n in range(footer.num_row_groups)]
    of_columns = {name: [group.column(position[name]) for group in groups] for name in columns if name in position}
    nulls = {name: sum(chunk.statistics.null_count for chunk in chunks) for name, chunks in of_columns.items()}
    ends = {name: least_and_greatest for name, chunks in of_columns.items() if (least_and_greatest := _ends(chunks)) is not None}
    return {
        "numRecords": footer.num_rows,
        "minValues": {name: least for name, (least, _) in ends.items()},
        "maxValues": {name: greatest for name, (_, greatest) in ends.items()},
        "nullCount": nulls,
    }


def _ends(groups: Sequence[pq.ColumnChunkMetaData]) -> tuple[Any, Any] | None:
    """The least and the greatest value; None where the file does not tell."""
    filled = [group.statistics for group in groups if group.statistics.null_count < group.num_values]
    if not filled or not all(statistics.has_min_max for statistics in filled):
        return None
    if filled[0].logical_type.type == "TIMESTAMP":  # Python has no instants before the year 1
        return _instant(min(statistics.min_raw for statistics in filled)), _instant(max(statistics.max_raw for statistics in filled))
    return min(statistics.min for statistics in filled), max(statistics.max for statistics in filled)


def _instant(micros: int) -> str:
    return f"{np.datetime64(micros, 'us')}Z"
