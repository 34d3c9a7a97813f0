"""Data files of a table: whoever computes rows writes them, this process or a task of Spark. No reader sees one before a commit names it.

By Arrow's own writer: that of delta-rs holds the whole file in memory, three times at its end, and takes half as long again (measured).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True)
class FileShape:
    """Form of a table's files. `statistics`: columns of which a commit tells the ends. `partition`: the column that is a folder."""

    folder: Path
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
    """Write rows of one partition, each piece a row group, as a file that no version of the table has yet; None where there are no rows."""
    filled = filter(len, pieces)
    first = next(filled, None)
    if first is None:
        return None
    of_partition = {shape.partition: str(first[shape.partition][0])} if shape.partition else {}
    path = Path(*(f"{name}={value}" for name, value in of_partition.items()), f"part-{uuid4()}.snappy.parquet")
    file = shape.folder / path
    file.parent.mkdir(exist_ok=True)
    try:
        _write(file, pa.schema([field for field in shape.columns if field.name not in of_partition]), chain([first], filled))
    except BaseException:  # a full disk would otherwise get fuller with each attempt
        file.unlink(missing_ok=True)
        raise
    pa.default_memory_pool().release_unused()  # Arrow would keep 110 MB of a large batch (measured)
    return _described(shape, path, of_partition)


def move_in(shape: FileShape, file: Path) -> DataFile | None:
    """A file that Spark wrote elsewhere on the disk, to the folder of a table without partitions; None where it has no rows."""
    file.replace(shape.folder / file.name)
    moved = _described(shape, Path(file.name), {})
    return moved if moved.count else None


def _described(shape: FileShape, path: Path, of_partition: Mapping[str, str]) -> DataFile:
    status, statistics = (shape.folder / path).stat(), _statistics(shape.folder / path, shape.statistics)
    summary = json.dumps(statistics, separators=(",", ":"))
    return DataFile(path.as_posix(), status.st_size, int(status.st_mtime * 1000), summary, statistics["numRecords"], of_partition)


def _write(file: Path, columns: pa.Schema, pieces: Iterator[pa.Table]) -> None:
    # No two payloads are alike: looking for repeats is in vain.
    repeated = [field.name for field in columns if field.type != pa.binary()]
    with pq.ParquetWriter(file, columns, use_dictionary=repeated, write_statistics=repeated) as writer:
        for piece in pieces:
            writer.write_table(piece.select(columns.names).cast(columns))


def _statistics(file: Path, columns: Sequence[str]) -> dict[str, Any]:
    """Sum up a file as Delta's PROTOCOL.md has it ("Per-file Statistics"). A column of nulls, or with very long texts, has no ends."""
    footer = pq.read_metadata(file)
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
