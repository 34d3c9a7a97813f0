"""Rows as files of Parquet or CSV, in a folder a day: exactly once.

    export/day=2026-01-05/readings-4c1f20aa-17-0.parquet

Names carry the number of the batch, so a repeat replaces what the try before it left. Files are written aside and renamed.
A later row of a key comes in a later file: of gold the highest `revision` counts.
"""

import shutil
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from orchestration.column_texts import plain_texts
from orchestration.conf.sink_settings import FilesSettings
from orchestration.connectors.sinks.dead_rows import sieve
from orchestration.connectors.sinks.sink import Batch, Sink
from orchestration.errors import TidemarkError
from orchestration.stores.disk import sync

DAY = "day"
DAYS_OF = (DAY, "window_start", "event_time", "window_end", "hour_at", "ingested_at")
"""The first of these that a table has says on which day a row is, in UTC; without any, all are in one folder."""
DRAFTS = ".draft"
MAX_OPEN_FILES = 100
MAX_DAYS = 100_000
LONGEST_NAME = 250
MIN_GROUP_ROWS = 65_536


class FileSink(Sink):
    """A folder for files of one sink alone."""

    def __init__(self, folder: Path, settings: FilesSettings) -> None:
        self._folder, self._format, self._is_coded = folder, settings.format, settings.binary is not None

    def check(self, table: str, schema: pa.Schema) -> None:
        odd = [field.name for field in schema if pa.types.is_binary(field.type)]
        if odd and self._format == "csv" and not self._is_coded:
            raise TidemarkError(f"column {odd[0]} of {table} is binary, which CSV cannot hold; set `binary: base64`, or `format: parquet`.")

    def old_rows_lack(self, columns: str, *, is_complete: bool) -> str | None:
        return None if is_complete else f"files from before do not have {columns}; `tidemark sinks reset` writes all of them anew"

    def write(self, batch: Batch, rows: Iterator[pa.Table]) -> bool:
        """Files are whole when they get their names. Where the batch is complete, those of other batches go then."""
        name = f"{batch.sink}-{batch.number}"
        drafts = self._folder / DRAFTS
        shutil.rmtree(drafts, ignore_errors=True)
        drafts.mkdir(parents=True)
        self._write_drafts(drafts, name, rows, batch)
        batch.refused.note()
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

    def _write_drafts(self, drafts: Path, name: str, rows: Iterable[pa.Table], batch: Batch) -> None:
        time = next((name for name in DAYS_OF if name in batch.schema.names and _is_plain(batch.schema.field(name).type)), None)
        shaped = (part for chunk in rows for part in sieve(chunk, partial(self._shaped, time=time), batch.refused))
        first = next(shaped, None)
        if first is None:
            return
        batches = (part for chunk in chain([first], shaped) for part in chunk.to_batches())
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

    def _shaped(self, rows: pa.Table, time: str | None) -> pa.Table:
        """Rows as the format holds them, with their day, `unknown` without a time. ValueError where no folder can have that name."""
        shaped = _as_texts(rows, is_coded=self._is_coded) if self._format == "csv" else rows
        if time is None:
            return shaped
        times = rows[time].combine_chunks()
        days = plain_texts(times.cast(pa.date32(), safe=False) if pa.types.is_timestamp(times.type) else times)
        if any(day is not None and ("\0" in day or len(quote(day)) > LONGEST_NAME) for day in pc.unique(days).to_pylist()):
            raise ValueError(f"{time} names the folder, and is longer than a name may be, or has a character NUL.")
        return shaped.select([name for name in rows.column_names if name != DAY]).append_column(DAY, pc.fill_null(days, "unknown"))


def _is_plain(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind))


def _as_texts(rows: pa.Table, *, is_coded: bool) -> pa.Table:
    """Rows as CSV can hold them: instants and lists as answers of SQL have them, bytes as base64 or as the text that they are. ValueError
    where a cell is no text."""
    for at, field in enumerate(rows.schema):
        column = rows[field.name]
        if pa.types.is_nested(field.type) or pa.types.is_temporal(field.type):
            rows = rows.set_column(at, field.name, plain_texts(column.combine_chunks()))
        elif pa.types.is_binary(field.type):
            coded = pa.array([None if value is None else b64encode(value).decode() for value in column.to_pylist()]) if is_coded else column
            rows = rows.set_column(at, field.name, coded.cast(pa.string()))
        elif pa.types.is_string(field.type):
            column.validate(full=True)
    return rows
