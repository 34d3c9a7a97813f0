"""A Delta table of somebody else as a source: rows that its versions add are events. Their position is version/file/row.

An offset is a position in the table (delta_steps.py). The first read takes the files that the table has; after that each version gives
what it added. Versions that only put files together add nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

import pyarrow as pa

from orchestration.conf.transport_settings import DeltaSettings
from orchestration.connectors.sources.delta_events import events_of
from orchestration.connectors.sources.delta_steps import FILES, ID, SNAPSHOT, VERSION, Position, order, steps
from orchestration.connectors.sources.source import Gap, Notice, Offset, Source, SourceDownError
from orchestration.errors import TidemarkError
from orchestration.storage.foreign_table import Added, ForeignTable, gone, newest_in_log

DELTA = "delta"
REWRITTEN = "it rewrote rows, and the table has no change data feed; none of them is read as new"
GONE = "the file was removed before it was read"
DELETED = "it took rows away; those that were read stay"


@dataclass
class Delta(Source):
    """`transport`: as conf declares it."""

    name: str
    transport: DeltaSettings
    max_batch_bytes: int
    _is_ending: bool = False
    _limit: float = inf
    """For a run that ends: the newest version when it first looked."""
    _table: ForeignTable | None = None
    """The table as last opened."""
    _gaps: list[Gap] = field(default_factory=list)
    """Gaps of the last read."""
    _notices: list[Notice] = field(default_factory=list)

    def stop_at_present(self) -> None:
        """At the version that is the newest at the next look."""
        self._is_ending = True

    def latest_offset(self, start: Offset) -> Offset:
        """Step over as many files as fit a batch, one at least, and over versions between them that add nothing. The first offset is
        where reading begins."""
        if DELTA in start and FILES not in start[DELTA] and newest_in_log(self.transport.table) == start[DELTA][VERSION]:
            return start
        table = self._opened(start)
        if self._is_ending and self._limit == inf:
            self._limit = table.version
        if DELTA not in start:
            return {**start, DELTA: self._first(table)}
        end, left, count = start[DELTA], self.max_batch_bytes, 0
        for position, _, file in steps(table, end):
            left, count = left - (file.length if file else 0), count + bool(file)
            if position[VERSION] > self._limit or (left < 0 and count > 1):
                break
            end = position
        return {**start, DELTA: end}

    def describe(self, offset: Offset) -> str:
        return f"version {offset[DELTA][VERSION]}" if DELTA in offset else ""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Added]:
        lost, files = list[int](), list[Added]()
        for position, commit, file in steps(self._opened(start), start[DELTA]) if DELTA in start else ():
            if order(position) > order(end[DELTA]):
                break
            files += [file] if file else []
            if commit is None:
                lost.append(position[VERSION])
            elif commit.removed and FILES not in position:
                self._tell(f"version {position[VERSION]}", REWRITTEN if commit.is_rewrite else DELETED)
        self._gaps = [Gap(str(self.transport.table), 0, first, last) for first, last in gone(lost)]
        return files

    def read(self, partition: Added) -> Iterator[pa.Table]:
        """Its rows. A file that is gone or damaged is a gap."""
        table, position, deleted = self._table or self._opened({}), f"{partition.version}/{partition.path}", 0
        try:
            for piece, deletes in events_of(self.name, table, partition, position):
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

    def notices(self) -> Sequence[Notice]:
        """Return what versions did besides adding rows, and which files are gone."""
        new, self._notices = self._notices, []
        return new

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
