"""A Delta table of somebody else as a source: rows that its versions add are events. Their position is version/file/row.

A row is a JSON object, and the kind of a change is a header. Of a change data feed only what is new is an event: rows that were inserted,
and rows as they are after an update. Silver would take what was deleted, and what a row was before, for readings.

An offset is a position in the table: its id, the version that was read, and how many files of that version where it was not all of them;
with `snapshot` they are the files that the table had at that version, else those that the version added; with `anew` nothing before it was
read. The first read takes the files that the table has. Versions that only put files together add nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bronze.events import File, events
from bronze.schema import HEADERS
from orchestration.conf.transport_settings import DeltaSettings
from orchestration.connectors.sources.file_reader import instant
from orchestration.connectors.sources.parquet_rows import as_json, numbered, rows_of
from orchestration.connectors.sources.source import Gap, Notice, Offset, Source, SourceDownError
from orchestration.errors import TidemarkError
from orchestration.storage.foreign_table import Added, Commit, ForeignTable, gone, newest_in_log

DELTA = "delta"
ID, VERSION, FILES, SNAPSHOT, ANEW = "table_id", "version", "files", "snapshot", "anew"
Position: TypeAlias = Mapping[str, Any]
CHANGE_TYPE, DELETE = "_change_type", b"delete"
NEW = (b"insert", b"update_postimage")
REWRITTEN = "it rewrote rows, and the table has no change data feed; none of them is read as new"
GONE = "the file was removed before it was read"
DELETED = "it took rows away; those that were read stay"


@dataclass
class Delta(Source):
    transport: DeltaSettings
    max_batch_bytes: int
    _limit: float = inf  # for a run that ends: the newest version when it first looked
    _table: ForeignTable | None = None  # the table as last opened
    _gaps: list[Gap] = field(default_factory=list)  # gaps of the last read

    def latest_offset(self, start: Offset) -> Offset:
        """Step over as many files as fit a batch, one at least, and over versions that add nothing. The first offset has no rows."""
        if DELTA in start and FILES not in start[DELTA] and newest_in_log(self.transport.table) == start[DELTA][VERSION]:
            return start
        table = self._opened(start)
        if self._is_ending and self._limit == inf:
            self._limit = table.version
        is_unread = DELTA in start and start[DELTA].get(FILES) == 0 and SNAPSHOT in start[DELTA]
        if DELTA not in start:
            return {**start, DELTA: self._first(table)}
        if is_unread and SNAPSHOT not in self._first(table):  # conf says another beginning by now
            return {**start, DELTA: {**self._first(table), ANEW: True}}
        end, left, count = start[DELTA], self.max_batch_bytes, 0
        for position, _, file in _steps(table, end):
            left, count = left - (file.length if file else 0), count + bool(file)
            if position[VERSION] > self._limit or (left < 0 and count > 1):
                break
            end = position
        return {**start, DELTA: end}

    def describe(self, offset: Offset) -> str:
        return f"version {offset[DELTA][VERSION]}" if DELTA in offset else ""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Added]:
        lost, files = list[int](), list[Added]()
        has_rows = DELTA in start and ANEW not in end[DELTA]
        for position, commit, file in _steps(self._opened(start), start[DELTA]) if has_rows else ():
            if _order(position) > _order(end[DELTA]):
                break
            files += [file] if file else []
            if commit is None:
                lost.append(position[VERSION])
            elif commit.removed and FILES not in position:
                self._tell(f"version {position[VERSION]}", REWRITTEN if commit.is_rewrite else DELETED)
        self._gaps = [Gap(str(self.transport.table), 0, first, last) for first, last in gone(lost)]
        return files

    def read(self, partition: Added) -> Iterator[pa.Table]:
        """Yield its rows. A file that is gone or damaged is a gap."""
        table, position, deleted = self._table or self._opened({}), f"{partition.version}/{partition.path}", 0
        try:
            for piece, deletes in _events(self.name, table, partition, position):
                deleted += deletes
                yield piece
        except (FileNotFoundError, ValueError) as error:
            if not table.is_there():
                raise self._down(f"the table at {self.transport.table} is gone, or its disk is") from None
            self._gaps.append(Gap(position, 0, partition.version, partition.version))
            self._tell(position, GONE if isinstance(error, FileNotFoundError) else f"the file cannot be read ({error})")
        except OSError as error:
            raise self._down(f"{table.file_of(partition)} cannot be read ({error.strerror or error})") from None
        if deleted:
            self._tell(position, f"{deleted} rows of it were deleted; those that were read stay")

    def gaps(self, start: Offset, end: Offset) -> Sequence[Gap]:
        """Versions whose entry of the log, and files that were gone before they were read."""
        return self._gaps

    def _first(self, table: ForeignTable) -> Position:
        first, table_id = self.transport.starting_version, {ID: table.table_id}
        if first is None and self.transport.starting == "earliest":
            return table_id | {VERSION: table.version, FILES: 0, SNAPSHOT: True}
        return table_id | {VERSION: table.version if first is None else first - 1}

    def _opened(self, start: Offset) -> ForeignTable:
        try:
            self._table = table = ForeignTable(self.transport.table)
        except TidemarkError as error:
            raise self._down(str(error)) from None
        if DELTA in start and start[DELTA][ID] != table.table_id:
            raise self._down(f"the table at {self.transport.table} is another one than the one that was read; give the source another name")
        if DELTA in start and start[DELTA][VERSION] > table.version:
            raise self._down(f"the table at {self.transport.table} ends at version {table.version}, before {start[DELTA][VERSION]}")
        return table

    def _down(self, why: str) -> SourceDownError:
        return SourceDownError(f"source {self.name} cannot be read: {why}; it is asked again later.")

    def _tell(self, what: str, why: str) -> None:
        self._notices.append(Notice("table changed", {"source": self.name, "what": what, "reason": why}))


def _steps(table: ForeignTable, begin: Position) -> Iterator[tuple[Position, Commit | None, Added | None]]:
    """Yield what lies behind a position: each file with the position behind it, and each version that has none."""
    for version in range(begin[VERSION], table.version + 1):
        position = begin if version == begin[VERSION] else {FILES: 0}
        if FILES not in position:
            continue
        commit = Commit(table.present(version)) if SNAPSHOT in position else table.commit(version)
        files = commit.files if commit else ()
        behind = {ID: table.table_id, VERSION: version}
        for n, file in enumerate(files[position[FILES] :], position[FILES] + 1):
            partly = {FILES: n} | ({SNAPSHOT: True} if SNAPSHOT in position else {})
            yield behind | (partly if n < len(files) else {}), commit, file
        if not files:
            yield behind, commit, None


def _order(position: Position) -> tuple[int, float]:
    return position[VERSION], position.get(FILES, inf)


def _events(source: str, table: ForeignTable, added: Added, position: str) -> Iterator[tuple[pa.Table, int]]:
    """ARRIVED of the rows of a file, in pieces; and how many rows of it say that they were deleted."""
    landed = File(source, position, instant(added.modified_ms * 1_000_000))

    def pieces() -> Iterator[pa.Table]:
        for rows in rows_of(table.file_of(added)):
            made = events(as_json(table.as_declared(rows, added)), landed)
            yield _with_change_type(made, rows[CHANGE_TYPE]) if added.has_changes else made

    begin = 0
    for piece in numbered(pieces(), position):
        if added.kept is not None:
            kept = added.kept.slice(begin, len(piece))
            begin += len(piece)
            yield piece.filter(pa.concat_arrays([kept, pa.repeat(pa.scalar(value=True), len(piece) - len(kept))])), 0
        elif added.has_changes:
            kinds = piece["headers"].combine_chunks().flatten().field("value")
            yield piece.filter(pc.is_in(kinds, pa.array(NEW, pa.binary()))), pc.sum(pc.equal(kinds, DELETE)).as_py() or 0
        else:
            yield piece, 0


def _with_change_type(made: pa.Table, kinds: pa.ChunkedArray) -> pa.Table:
    values = kinds.combine_chunks().cast(pa.binary())
    pairs = pa.StructArray.from_arrays([pa.repeat(CHANGE_TYPE, len(values)), values], ["key", "value"])
    headers = pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), pairs)
    return made.set_column(made.column_names.index("headers"), made.schema.field("headers"), headers.cast(HEADERS))
