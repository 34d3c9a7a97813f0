"""Rows as files of Parquet or CSV, in a folder a day: exactly once.

    export/day=2026-01-05/readings-4c1f20aa-17-0.parquet

Names carry the number of the batch, so a repeat replaces what the try before it left. Files are written aside and renamed.
A later row of a key comes in a later file: of gold the highest `revision` counts.
"""

import shutil
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from orchestration.connectors.sinks.sink import Batch, Sink
from orchestration.rendering import plain, to_json, values
from orchestration.storage.state_file import sync

DAY = "day"
DAYS_OF = (DAY, "window_start", "event_time", "window_end", "hour_at", "ingested_at")
"""The first of these that a table has says on which day a row is, in UTC; without any, all are in one folder."""
DRAFTS = ".draft"
MAX_OPEN_FILES = 100
MAX_DAYS = 100_000
MIN_GROUP_ROWS = 65_536


class FileSink(Sink):
    """A folder for files of one sink alone. `format`: parquet or csv."""

    def __init__(self, folder: Path, format: str) -> None:
        self._folder, self._format = folder, format

    def write(self, batch: Batch, rows: Iterator[pa.Table]) -> bool:
        """Files are whole when they get their names. Where the batch is complete, those of other batches go then."""
        name = f"{batch.sink}-{batch.number}"
        drafts = self._folder / DRAFTS
        shutil.rmtree(drafts, ignore_errors=True)
        drafts.mkdir(parents=True)
        self._write_drafts(drafts, name, rows, batch.schema)
        others = set(self._folder.glob(f"**/{batch.sink if batch.is_complete else name}-*.{self._format}"))
        written = {self._folder / draft.relative_to(drafts): draft for draft in drafts.glob(f"**/*.{self._format}")}
        for file, draft in sorted(written.items()):
            sync(draft)  # before the position says that it is there
            file.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(file)
        for file in others - written.keys() - set(written.values()):
            file.unlink()
        for folder in {self._folder, *(file.parent for file in written)}:
            sync(folder)
        shutil.rmtree(drafts)
        return True

    def _write_drafts(self, drafts: Path, name: str, rows: Iterable[pa.Table], schema: pa.Schema) -> None:
        time = next((column for column in DAYS_OF if column in schema.names), None)
        shaped = (_with_day(_with_json(chunk) if self._format == "csv" else chunk, time) for chunk in rows)
        first = next(shaped, None)
        if first is None:
            return
        batches = (batch for chunk in chain([first], shaped) for batch in chunk.to_batches())
        ds.write_dataset(
            pa.RecordBatchReader.from_batches(first.schema, batches),
            drafts,
            format=self._format,
            basename_template=f"{name}-{{i}}.{self._format}",
            partitioning=None if time is None else ds.partitioning(pa.schema([(DAY, pa.string())]), flavor="hive"),
            max_partitions=MAX_DAYS,
            max_open_files=MAX_OPEN_FILES,
            min_rows_per_group=MIN_GROUP_ROWS,
            use_threads=False,
        )


def _with_day(rows: pa.Table, time: str | None) -> pa.Table:
    """A row without a time is of `day=unknown`."""
    if time is None:
        return rows
    is_instant = pa.types.is_timestamp(rows.schema.field(time).type)
    days = pc.cast(pc.cast(rows[time], pa.date32(), safe=False) if is_instant else rows[time], pa.string())
    return rows.select([name for name in rows.column_names if name != DAY]).append_column(DAY, pc.fill_null(days, "unknown"))


def _with_json(rows: pa.Table) -> pa.Table:
    """CSV has no lists."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            texts = [None if value is None else to_json(plain(value)) for value in values(rows[field.name])]
            rows = rows.set_column(at, field.name, pa.array(texts, pa.string()))
    return rows
