"""The one way to write a table: files that are there (data_files.py) become its rows by one commit of delta-rs, and nobody else commits.

A commit carries the transaction of its flow, by which a repeated one is known, and that of the writer (lease.py): a process whose lease
another one has taken over is refused, also when it slept between looking and writing.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from orchestration import crash
from orchestration.errors import HeldError, TidemarkError
from orchestration.location import Location
from orchestration.storage.data_files import DataFile, FileShape, write_file
from orchestration.storage.delta import OpenTable, committed, files_of, in_log, is_table, new_table, open_table, written_in
from orchestration.storage.duckdb_view import readable
from orchestration.storage.held_leases import TAKEN_OVER, lease_above
from orchestration.storage.kept import forget, refuse_others, writing
from orchestration.storage.kept_tables import asked
from orchestration.storage.log_checksums import forget_checksum, sum_up
from orchestration.storage.row_digest import INFO, added_up, row_digest
from orchestration.storage.row_pieces import gather, in_pieces, merged
from orchestration.storage.seals import Seal
from orchestration.storage.seals import listed as damages_in_words

STATISTICS = "delta.dataSkippingStatsColumns"
MAX_SMALL_FILES = 100
FULL_BYTES = 100 * 1024 * 1024
"""A file of this size is left as it is."""
OTHER_ROWS = (
    "compaction of {} is refused: its {} small files hold {}, and what was to replace them holds {}. Nothing was committed.\n"
    "  Run `tidemark verify --everything`: the disk or the memory of this machine may be damaged."
)
SIMPLE = (pa.string(), pa.bool_(), pa.int32(), pa.int64(), pa.timestamp("us", "UTC"))
"""Types of which a commit tells the ends, where a table does not say of which columns it does."""
Kept = Callable[[pa.Table], pa.Table]
PutTogether = tuple[DataFile | None, str, str]
"""A large file, the digest of the rows of small files, and that of its own."""
MapGroups = Callable[[Callable[[list[DataFile]], PutTogether], list[list[DataFile]]], Iterable[PutTogether]]


def create(path: Location, schema: pa.Schema, configuration: Mapping[str, str] | None = None, partition: str | None = None) -> None:
    if not is_table(path):
        sum_up(path, new_table(path, Schema.from_arrow(schema), partition, configuration or {}))


def widen(path: Location, schema: pa.Schema) -> None:
    """Give a table that is there the columns of the schema that it lacks; a column keeps its first comment."""
    names = {field.name for field in open_table(path).schema().fields}
    if new := [field for field in Schema.from_arrow(schema).fields if field.name not in names]:
        with _changing(path) as table:
            table.alter.add_columns(new)


def file_shape(path: Location, table: OpenTable | None = None) -> FileShape:
    """Return the shape of the files of a table that is there."""
    table = table or open_table(path)
    columns, metadata = pa.schema(table.schema().to_arrow()), table.metadata()
    declared = metadata.configuration.get(STATISTICS)
    statistics = declared.split(",") if declared else [field.name for field in columns if field.type in SIMPLE]
    return FileShape(path, columns, tuple(statistics), next(iter(metadata.partition_columns), None))


def commit(  # noqa: PLR0917
    path: Location,
    files: Iterable[DataFile],
    app_id: str | None = None,
    version: int = 0,
    removed: Iterable[DataFile] = (),
    info: Mapping[str, str] | None = None,
    *,
    is_rearranged: bool = False,
    others: Sequence[tuple[str, int]] = (),
) -> None:
    """Add and remove files at once; nothing is done where the application has committed this version or a higher one.

    `info`: what the commit says in its `commitInfo`. `is_rearranged`: the rows are those of before, so that no stream reads them again.
    `others`: transactions of other applications whose files are among these.
    HeldError where another process has taken over the lease.
    """
    files, writer = [*files], _writer(path)
    with writing(path):
        table = open_table(path)
        if app_id and written_in(table, app_id) >= version:
            return
        if writer and written_in(table, writer[0]) > writer[1]:
            raise HeldError(TAKEN_OVER.format(path))
        transactions = [Transaction(*one) for one in ((app_id, version) if app_id else None, *others, writer) if one]
        properties = CommitProperties(custom_metadata=dict(info) if info else None, app_transactions=transactions)
        actions, partition = _actions(files, removed, is_change=not is_rearranged), table.metadata().partition_columns
        crash.point(crash.Point.COMMIT_DUE)
        _writer(path)
        forget_checksum(path)
        try:
            table.create_write_transaction(actions, "append", table.schema(), partition, commit_properties=properties)
        except CommitFailedError as error:
            if not _is_done(path, files, transactions):
                raise HeldError(TAKEN_OVER.format(path)) if writer and "Concurrent transaction" in str(error) else error from error
        sum_up(path, committed(path, table, transactions))


def _writer(path: Location) -> tuple[str, int] | None:
    """Return the transaction of the lease of this process, None without one; HeldError where another process may hold it by now."""
    if (lease := lease_above(path)) is None:
        refuse_others(path)
        return None
    lease.confirm()
    return lease.transaction


def _is_done(path: Location, files: Sequence[DataFile], transactions: Sequence[Transaction]) -> bool:
    """Whether a commit that failed was made: the answer of the store was lost, and the next attempt met the first."""
    newest = asked(path)
    if files:  # names of files are given once
        return {file.path for file in files} <= {*files_of(newest)}
    return bool(transactions) and all(written_in(newest, one.app_id) == one.version for one in transactions)


def fence(paths: Iterable[Location]) -> None:
    """Commit nothing to each table, after a holder of the lease that ended without a word: from then on it can commit no more."""
    for path in paths:
        # Not after others: an empty commit of bronze is a batch for silver.
        if (lease := lease_above(path)) and lease.is_taken_over and is_table(path):
            forget(path)  # the holder before may have written since
            commit(path, [])


def append_pieces(
    path: Location, pieces: Iterator[pa.Table], app_id: str, version: int, info: Callable[[], Mapping[str, str]] | None = None
) -> int:
    """Append rows of one partition as one file, a piece a row group, once; returns how many. `info`: asked for when all are written."""
    table = open_table(path)
    if written_in(table, app_id) >= version:
        return 0
    file = write_file(file_shape(path, table), pieces)
    commit(path, [file] if file else [], app_id, version, info=info() if info else None)
    return file.count if file else 0


def append_rows(path: Location, rows: pa.Table, app_id: str | None = None, version: int = 0) -> None:
    """Append rows that are in memory; once, where an application says which version they are. A table that is not there is made."""
    create(path, rows.schema)
    if len(rows) or app_id:
        file = write_file(file_shape(path), iter([rows]))
        commit(path, [file] if file else [], app_id, version)


def replace_rows(  # noqa: PLR0917
    path: Location, kept: Kept, keys: Sequence[str], new: Iterable[pa.Table] = (), app_id: str | None = None, version: int = 0
) -> None:
    """Write anew, in one commit, the files of which `kept` leaves rows out by the columns `keys`, and append others."""
    shape = file_shape(path)
    changed = [file for file in _files(path) if sum(len(kept(rows)) for rows in _rows(shape, file, keys)) < file.count]
    rows = chain.from_iterable(map(kept, _rows(shape, file)) for file in changed)
    file = write_file(shape, merged(table.select(shape.columns.names).cast(shape.columns) for table in chain(rows, new)))
    if file or changed or app_id:
        commit(path, [file] if file else [], app_id, version, changed)


def delete_rows(path: Location, column: str, values: Collection[int]) -> None:
    gone = pa.array(values, pa.int64())
    replace_rows(path, lambda rows: rows.filter(pc.invert(pc.is_in(rows[column], gone))), [column])


def compact(path: Location, target_bytes: int, partition: str | None = None, order: str | None = None, map_groups: MapGroups = map) -> None:
    """Put small files together, of one partition or of a table without. `order`: columns by which each large file is sorted.
    `map_groups`: calls a function for each large file, here or in tasks of Spark.

    The commit has a digest of the rows. TidemarkError, and no commit, where the large files hold other rows than the small ones, or these
    are not as they were sealed: once they are one file, nothing would show it.
    """
    shape = file_shape(path)
    of_partition = {shape.partition: partition} if shape.partition else {}
    small = [file for file in _files(path) if file.size < target_bytes and file.partition == of_partition]
    together = [files for files in gather(small, lambda file: (0, file.size), target_bytes) if len(files) > 1]
    seal = Seal(path)
    if damaged := seal.damages([file.path for file in chain(*together) if file.path in seal.marks], lambda _: True):
        raise TidemarkError(f"{path} is not compacted, as files are damaged: {damages_in_words(damaged)}. Restore them from a backup.")
    if together:
        files, before, after = zip(*map_groups(partial(_put_together, shape, order), together), strict=True)
        replaced, large = [*chain(*together)], [*filter(None, files)]
        if (digest := added_up(before)) != added_up(after):
            for file in large:
                (shape.folder / file.path).delete()
            raise TidemarkError(OTHER_ROWS.format(path, len(replaced), digest, added_up(after)))
        commit(path, large, removed=replaced, info={INFO: digest}, is_rearranged=True)
        open_table(path).create_checkpoint()  # a reader then needs none of the entries that added the small files


def _put_together(shape: FileShape, order: str | None, files: Sequence[DataFile]) -> PutTogether:
    large = write_file(shape, _in_order(shape, files, order) if order else merged(*(_rows(shape, file) for file in files)))
    in_files = pa.schema([field for field in shape.columns if field.name != shape.partition])
    before, after = (row_digest(_sized(shape, some), in_files) for some in (files, [large] if large else []))
    return large, before, after


def compact_many(path: Location) -> None:
    """The same for a table that Spark never reads, once it has many files: every run adds one, and every reader reads them all."""
    if len(files_of(open_table(path))) > MAX_SMALL_FILES:
        compact(path, FULL_BYTES)
        with _changing(path) as table:
            table.vacuum(dry_run=False)  # files that were replaced a week ago


@contextmanager
def _changing(path: Location) -> Iterator[OpenTable]:
    """A table that nobody else reads, to be changed in place."""
    with writing(path):
        try:
            yield asked(path)
        finally:
            forget(path)


def _actions(files: Iterable[DataFile], removed: Iterable[DataFile], *, is_change: bool) -> list[AddAction | RemoveAction]:
    now = int(time.time() * 1000)
    return [
        *(AddAction(file.path, file.size, dict(file.partition), file.modified_ms, is_change, file.statistics) for file in files),
        *(RemoveAction(file.path, is_change, now, file.size, dict(file.partition)) for file in removed),
    ]


def _files(path: Location) -> list[DataFile]:
    table = open_table(path)
    partition = next(iter(table.metadata().partition_columns), None)
    log = in_log(table)
    days = log[f"partition.{partition}"].to_pylist() if partition else [None] * len(log)
    columns = (log[name].to_pylist() for name in ("size_bytes", "num_records"))
    return [
        DataFile(name, size, 0, "", count, {partition: str(day)} if partition else {})
        for name, day, size, count in zip(files_of(table), days, *columns, strict=True)
    ]


def _rows(shape: FileShape, file: DataFile, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Rows of a file in pieces, with the column that is a folder."""
    with (shape.folder / file.path).open_input() as source, pq.ParquetFile(source) as opened:
        for batch in opened.iter_batches(columns=columns):
            rows = pa.Table.from_batches([batch])
            for name, value in file.partition.items():
                rows = rows.append_column(name, pa.repeat(value, len(rows)))
            yield rows.cast(pa.schema([shape.columns.field(name) for name in rows.column_names]))  # others than we write views of texts


def _sized(shape: FileShape, files: Iterable[DataFile]) -> dict[Location, int]:
    return {shape.folder / file.path: file.size for file in files}


def _in_order(shape: FileShape, files: Iterable[DataFile], order: str) -> Iterator[pa.Table]:
    """Read rows in order by DuckDB, which sorts what does not fit in memory beside the files."""
    import duckdb  # nothing else here needs it, and it takes a while to load

    with duckdb.connect(
        config={"memory_limit": "512MB", "threads": 1, "temp_directory": str(shape.folder.local / ".sorting")}
    ) as connection:
        rows = connection.read_parquet(readable(connection, _sized(shape, files))).order(order)
        yield from in_pieces(rows.to_arrow_reader(), shape.columns)
