"""Write a micro-batch to its tables: each once, however often the batch is repeated.

Every append carries pipeline/flow/table/generation as its application id and the micro-batch as its version, so that Delta itself refuses
the second one. Without it, a crash between two tables doubles rows.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.storage.bindings import THE_BEGINNING, start_of
from orchestration.storage.checkpoints import newest_batch, offsets, read_up_to
from orchestration.storage.commit import commit, file_shape
from orchestration.storage.data_files import DataFile, FileShape, move_in, write_file
from orchestration.storage.delta import added, max_in_log, table_id, written_by
from orchestration.storage.lane_record import FLOW
from orchestration.storage.meeting import Meeting, Share
from orchestration.storage.row_pieces import merged
from orchestration.storage.silver_inputs import publish
from orchestration.storage.tables import Table
from silver.readings import without_keys_of

MANY_BYTES = 16 * 1024 * 1024
"""Bytes of bronze from which on Spark writes the rows itself."""
FEW_BYTES = 4 * 1024 * 1024
"""The most bytes of a task that are handed to this process, which writes those of all tasks as one file."""
OF_TASK = pa.schema(
    [
        *(("path", pa.string()), ("size", pa.int64()), ("modified_ms", pa.int64()), ("statistics", pa.string()), ("count", pa.int64())),
        ("rows", pa.binary()),
    ]
)
"""The files that a task has written, or its few `rows` as a stream of Arrow."""


def append(
    rows: DataFrame, table: Table, app_id: str, version: int, *, is_large: bool = False, may_commit: Callable[[], bool] = lambda: True
) -> bool:
    """Append `rows` once: of a repeat with the same app id and a version that is not higher nothing is written.

    `is_large`: there may be many. `may_commit`: asked when all rows are computed; False removes what was written. Returns its answer.
    """
    files = _files(rows, table, app_id, version, is_large=is_large)
    if files is None:
        return True
    if not may_commit():
        for file in files:
            (table.location / file.path).delete()
        return False
    commit(table.location, files, app_id, version)
    return True


def _files(rows: DataFrame, table: Table, app_id: str, version: int, *, is_large: bool) -> list[DataFile] | None:
    """Write the files of rows that have yet to be appended; None of a repeat.

    Rows of a repeat are computed all the same. A query that keeps state (silver.readings) would otherwise end at every start: Spark refuses
    a micro-batch whose state was not brought up to date.
    """
    if written_by(table.location, app_id) >= version:
        _compute(rows)
        return None
    shape = file_shape(table.location)
    # On a store Spark would copy each file to its name.
    return _files_of_spark(rows, shape) if is_large and shape.folder.store.is_disk else _files_of_tasks(rows, shape)


def _compute(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _files_of_spark(rows: DataFrame, shape: FileShape) -> list[DataFile]:
    """Write many rows by Spark: for silver of 2,000,000 events it takes 22 s, and tasks that write with Arrow 34 s (measured)."""
    with TemporaryDirectory(prefix=".writing-", dir=shape.folder.local) as folder:
        rows.select(shape.columns.names).write.mode("overwrite").parquet(folder)
        return [file for written in sorted(Path(folder).glob("part-*")) if (file := move_in(shape, written))]


def _files_of_tasks(rows: DataFrame, shape: FileShape) -> list[DataFile]:
    """Write few rows as one file, however many tasks have some: for 5,000 rows in half the time."""
    of_tasks = rows.mapInArrow(partial(_written, shape, FEW_BYTES), from_arrow_schema(OF_TASK)).toArrow()
    handed = [pa.ipc.open_stream(few) for few in of_tasks["rows"].drop_null().to_pylist()]
    rest = write_file(shape, merged(pa.Table.from_batches([batch]) for batch in chain.from_iterable(handed)))
    files = [DataFile(**file) for file in of_tasks.drop_columns("rows").to_pylist() if file["path"]]
    return [*files, *([rest] if rest else [])]


def _written(shape: FileShape, few_bytes: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task of Spark. A task that is tried again leaves the file of its first attempt behind, which no commit names."""
    few, pieces, length = [], iter(pa.Table.from_batches([batch]) for batch in batches), 0
    for piece in pieces:
        few.append(piece)
        if (length := length + piece.nbytes) > few_bytes:
            file = write_file(shape, merged(few, pieces))
            if file:
                yield pa.RecordBatch.from_pylist([vars(file)], OF_TASK)
            return
    if few:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, few[0].schema) as stream:
            for piece in few:
                stream.write_table(piece)
        yield pa.RecordBatch.from_pylist([{"rows": sink.getvalue().to_pybytes()}], OF_TASK)


def readings(lake: Lake, flow: str, meeting: Meeting, batch: DataFrame, batch_id: int) -> None:
    """Silver: rows as a lane computed them, without those that it reads only for its state, or whose key a late row has.

    Nothing is written of a micro-batch of such rows alone, or of none.
    """
    publish(lake)  # devices may have been registered since the batch before
    table, start, watermark = lake.tables[FLOW], start_of(lake, flow), offsets(lake.checkpoint(flow), batch_id).watermark_ms
    rows = batch if start == THE_BEGINNING else batch.where(F.col("bronze_batch") > start.bronze_batch)
    if _has_late_ahead(lake, watermark):
        late = lake.read("silver.late")
        rows = without_keys_of(late.where(F.col("event_time") >= F.timestamp_millis(F.lit(watermark))) if watermark else late, rows)
    read, app_id = _files_read(lake, flow, batch_id, start.version), lake.app_id(flow, table.name)
    bronze_batch = max((json.loads(file["stats"])["maxValues"]["bronze_batch"] for file in read), default=-1)
    if bronze_batch <= start.bronze_batch:
        _compute(rows)
        return
    files = _files(rows, table, app_id, batch_id, is_large=sum(file["size"] for file in read) > MANY_BYTES)
    if files is not None:
        meeting.bring(flow, bronze_batch, Share(files, (app_id, batch_id)))
    crash.point(crash.Point.READINGS_WRITTEN)


def commit_readings(table: Table, shares: Sequence[Share]) -> None:
    """Commit the rows of all lanes of a bronze batch, with the transaction of each."""
    (app_id, version), *others = (share.transaction for share in shares)
    commit(table.location, [file for share in shares for file in share.files], app_id, version, others=others)


def is_half_done(lake: Lake, stream: str) -> bool:
    """Whether gold holds rows of a micro-batch that a kill ended; until the stream repeats it, the rest of it may be missing."""
    flow = f"gold.{stream}"
    finished, started = (newest_batch(lake.checkpoint(flow) / log) for log in ("commits", "offsets"))
    if started <= finished:  # nearly always, and then no table is looked at
        return False
    return any(lake.newest_gold_batch(stream, kind) > finished for kind in ("aggregates", "vectors"))


def _files_read(lake: Lake, flow: str, batch_id: int, first_version: int) -> list[dict[str, Any]]:
    """Return the files of bronze that a micro-batch of silver reads, from the log: none, or that of one bronze batch."""
    path = lake.table_path("bronze.events")
    source_id = table_id(path)
    ends = (read_up_to(lake.checkpoint(flow), batch, source_id) for batch in (batch_id - 1 if batch_id else None, batch_id))
    first, last = (version + (index >= 0) for version, index in ends)  # a version whose file is read is behind
    files = (file for version in range(max(first, first_version), last) for file in added(path, version) if file["dataChange"])
    return [file for file in files if json.loads(file["stats"])["numRecords"]]


def _has_late_ahead(lake: Lake, watermark: int) -> bool:
    """Say, from the log alone, whether a row of silver.late is at or after the watermark, as one that was in quarantine may be.

    The stream rejects what is behind the watermark; of what is ahead, it has only seen readings.
    """
    newest = max_in_log(lake.tables["silver.late"].location, "event_time")
    # The log tells whole milliseconds, rounded down. Without a watermark nothing is behind it, not even what is before 1970.
    return newest is not None and (not watermark or newest.timestamp() * 1000 + 1 >= watermark)
