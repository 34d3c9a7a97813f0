"""Write the windows that a micro-batch closed to the tables of gold, and the vectors that they complete.

Arrow does it for all groups of the stream at once, one commit of aggregates and one of vectors, piece by piece, so that each piece fits in
memory: entities by a hash of their names, or a range of time. What does not fit is halved. Nearly always all is one piece.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from hashlib import md5
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gold.schema import WINDOW_KEY
from gold.windows import revisions
from gold.windows.chains import chained
from gold.windows.spec import Group
from gold.windows.vectors import in_blocks
from orchestration import crash
from orchestration.engine.chains import KEY, Key, NewestCarries, holds, keys_of, linked_metrics
from orchestration.engine.lake import Lake
from orchestration.engine.session import from_arrow
from orchestration.storage.bindings import start_of
from orchestration.storage.commit import append_pieces
from orchestration.storage.delta import ask, literal, open_table
from orchestration.storage.positions import closed_until_ms
from orchestration.storage.tables import Table

HASHES = 256
"""Values of the first byte of an MD5, which Spark, delta-rs and Python compute alike."""
OF_ENTITY = {"device": "device_id", "group": "device_group"}
"""The column that names the entities of vectors, as groups declare them."""
Rows = TypeVar("Rows")
IN_TURN = threading.Lock()
"""Streams write the same tables, and the windows of several, if they are many, would fill the memory."""


@dataclass(frozen=True)
class Limits:
    """Limits of a piece. `rows`: some 500 bytes each for a moment (measured). `bytes`: of rows read from a table; of rows from Spark, which
    refuses a result above 1 GiB, those of the names of devices.
    """

    rows: int = 1_000_000
    bytes: int = 256 * 1024 * 1024


LIMITS = Limits()


@dataclass(frozen=True)
class Piece:
    """Windows that end from `first` to `last`, in seconds since 1970, of entities whose hash is from `low` to `high`.

    `entity`: the column that names these: a vector of a group has features of many devices, which stay together. Time is not cut finer
    than `fill_seconds`, as vectors reach back so far to be filled.
    """

    first: int
    last: int
    entity: str = OF_ENTITY["device"]
    fill_seconds: int = 0
    low: int = 0
    high: int = HASHES - 1

    @property
    def is_of_all(self) -> bool:
        """Whether only time cuts it."""
        return (self.low, self.high) == (0, HASHES - 1)

    def halves(self) -> "tuple[Piece, Piece] | None":
        """None where cutting would not help, and it is taken as it is."""
        if self.low < self.high:
            middle = (self.low + self.high) // 2
            return replace(self, high=middle), replace(self, low=middle + 1)
        if self.last - self.first > self.fill_seconds:
            middle = (self.first + self.last) // 2
            return replace(self, last=middle), replace(self, first=middle + 1)
        return None

    def back(self) -> "Piece":
        """With earlier windows, which may fill its vectors."""
        return replace(self, first=self.first - self.fill_seconds)

    def of(self, rows: pa.Table) -> pa.Table:
        """Select the rows of Arrow that are in it."""
        in_time = self.ending_in(rows)
        if self.is_of_all:
            return in_time
        hashes = {name: md5(name.encode(), usedforsecurity=False).digest()[0] for name in in_time[self.entity].unique().to_pylist()}
        return with_values(in_time, {self.entity: [name for name, chosen in hashes.items() if self.low <= chosen <= self.high]})

    def ending_in(self, rows: pa.Table) -> pa.Table:
        """Rows of Arrow in its range of time."""
        first, last = (pa.scalar(seconds * 1_000_000, pa.timestamp("us", "UTC")) for seconds in (self.first, self.last))
        return _where(rows, pc.and_(pc.greater_equal(rows["window_end"], first), pc.less_equal(rows["window_end"], last)))

    def predicate(self, entity: str | None = None, instant: str = "to_timestamp_micros") -> str:
        """SQL for Spark and delta-rs, whose function for an `instant` of microseconds has another name. `entity`: another column."""
        first, last = (f"{instant}({seconds * 1_000_000})" for seconds in (self.first, self.last))
        in_time = f"window_end between {first} and {last}"
        if self.is_of_all:
            return in_time
        return f"{in_time} and substr(md5({entity or self.entity}), 1, 2) between '{self.low:02x}' and '{self.high:02x}'"


def in_pieces(piece: Piece, read: Callable[[Piece, Limits | None], Rows | None]) -> Iterator[tuple[Piece, Rows]]:
    """Yield what `read` gives for the piece, or for its halves if it returns None because the piece is larger than the limits."""
    halves = piece.halves()
    rows = read(piece, LIMITS if halves else None)
    if rows is not None:
        yield piece, rows
    else:
        for half in halves or ():
            yield from in_pieces(half, read)


@dataclass(frozen=True)
class Windows:
    """Windows that a DataFrame holds; in memory, once `handed_over`. Ends in seconds since 1970. `name_bytes`: of the names of devices."""

    rows: DataFrame
    count: int
    name_bytes: int
    first_end: int
    last_end: int
    in_memory: pa.Table | None = None

    def whole(self) -> Piece:
        return Piece(self.first_end, self.last_end)

    def read(self, piece: Piece, limits: Limits | None) -> pa.Table | None:
        """Read the rows of a piece; None if they are more than the limits."""
        if self.in_memory is not None:
            return piece.of(self.in_memory)
        of_piece = self.rows.where(piece.predicate(instant="timestamp_micros"))
        if limits is not None and (windows := measured(of_piece)) and not windows.fit(limits):
            return None
        return of_piece.toArrow()

    def handed_over(self) -> "Windows":
        """In memory, where they fit; else they are left to be read in pieces."""
        return replace(self, in_memory=self.rows.toArrow()) if self.fit(LIMITS) else self

    def fit(self, limits: Limits) -> bool:
        return self.count <= limits.rows and self.name_bytes <= limits.bytes


def measured(rows: DataFrame) -> Windows | None:
    """None where there are none. It runs the query that makes them to its end."""
    ends = (F.unix_seconds(end("window_end")) for end in (F.min, F.max))
    counted = rows.agg(F.count("*"), F.sum(F.octet_length("device_id")), *ends).collect()[0]
    return Windows(rows, *counted) if counted[0] else None


def read(table: Table, predicate: str, limits: Limits | None, chosen: Mapping[str, list[str]] | None = None) -> pa.Table | None:
    """Rows of a table by a predicate of SQL, and by values of columns, without Spark; None where they are more than the limits."""
    newest = open_table(table.location)
    schema, kept, count, size = pa.schema(newest.schema().to_arrow()), [], 0, 0
    if chosen and not all(chosen.values()):
        return schema.empty_table()
    # Files are skipped by the least and the greatest value; a list of thousands would take longer than Arrow does.
    ends = (f" and {column} between {literal(min(values))} and {literal(max(values))}" for column, values in (chosen or {}).items())
    for batch in ask(f"select * from history where {predicate}{''.join(ends)}", {"history": newest}):
        kept.append(with_values(pa.Table.from_batches([batch]).cast(schema), chosen or {}))
        count, size = count + len(kept[-1]), size + kept[-1].nbytes
        if limits is not None and (count > limits.rows or size > limits.bytes):
            return None
    return pa.concat_tables([schema.empty_table(), *kept])


def with_values(rows: pa.Table, chosen: Mapping[str, list[str]]) -> pa.Table:
    """Rows whose columns have some of these values."""
    for column, values in chosen.items():
        rows = _where(rows, pc.is_in(rows[column], value_set=pa.array(values, pa.string())))
    return rows


def _where(rows: pa.Table, is_meant: pa.ChunkedArray) -> pa.Table:
    """Without a copy where all are meant, as they mostly are: vectors may be wide."""
    return rows if pc.all(is_meant, min_count=0).as_py() else rows.filter(is_meant)


@dataclass(frozen=True)
class MicroBatch:
    lake: Lake
    stream: str
    number: int

    def app_id(self, table: Table) -> str:
        return self.lake.app_id(f"gold.{self.stream}", table.name)

    def may_go_on_from(self, groups: Sequence[Group]) -> int:
        """Return the end of the first window that one without a reading may go on from, in microseconds since 1970."""
        flow, number = f"gold.{self.stream}", self.number
        closed = closed_until_ms(self.lake, self.stream, number - 1) if number else start_of(self.lake, flow).closed_until_ms
        metrics = (self.lake.conf.metrics[name] for name in linked_metrics(self.lake, groups))
        return closed * 1000 - max(metric.longest_seconds + metric.hold_seconds for metric in metrics) * 1_000_000

    def stamped(self, rows: pa.Table) -> pa.Table:
        """With the columns that every row of gold has."""
        revision, number = (pa.repeat(pa.scalar(n, kind), len(rows)) for n, kind in ((0, pa.int32()), (self.number, pa.int64())))
        return rows.append_column("revision", revision).append_column("gold_batch", number)


def windows(lake: Lake, stream: str, groups: Sequence[Group], carries: NewestCarries, batch: DataFrame, batch_id: int) -> None:  # noqa: PLR0917
    """Write what a micro-batch closed. `carries`: of the stream, for as long as the query runs."""
    this = MicroBatch(lake, stream, batch_id)
    rows = batch.where(F.col("device_id").isNotNull()).persist()  # windows without a device are those of ticks
    try:
        # Counting also runs the query to its end. Most batches close nothing, and then nothing is written.
        closed = measured(rows)
        with IN_TURN if closed or holds(lake, groups) else nullcontext(), _in_chains(this, groups, carries, rows, closed) as complete:
            if complete is not None:
                _append(this, groups, complete.handed_over())
        crash.point(crash.Point.WINDOWS_WRITTEN)
    finally:
        rows.unpersist()


@contextmanager
def _in_chains(
    this: MicroBatch, groups: Sequence[Group], carries: NewestCarries, batch: DataFrame, closed: Windows | None
) -> Iterator[Windows | None]:
    """Complete the windows that go on from those that closed before; of values that hold also those that have no reading."""
    lake, may_hold = this.lake, holds(this.lake, groups)
    if not linked_metrics(lake, groups) or (closed is None and not may_hold):
        yield closed
        return
    linked = batch.where(F.col("metric").isin(linked_metrics(lake, groups))).select(*KEY).distinct()
    keys = frozenset(keys_of(linked.toArrow())) if closed else frozenset[Key]()
    before = carries.before(this.number, this.may_go_on_from(groups), keys)
    until = closed_until_ms(lake, this.stream, this.number) * 1000
    rows = chained(batch, from_arrow(lake.spark, before), lake.conf.metrics, until).persist()
    try:
        yield measured(rows) if may_hold or closed is None else replace(closed, rows=rows)
    finally:
        rows.unpersist()


def by_entity(groups: Sequence[Group]) -> Iterator[tuple[str, int, list[Group]]]:
    """Groups with vectors of devices, then those with vectors of groups: the column of the entity, and how far back any is filled."""
    for entity, column in OF_ENTITY.items():
        alike = {group: group.vector.max_fill_seconds for group in groups if group.vector and group.vector.entity == entity}
        if alike:
            yield column, max(alike.values()), [*alike]


def _append(this: MicroBatch, groups: Sequence[Group], closed: Windows) -> None:
    aggregates, of_vectors, _ = this.lake.gold(this.stream)
    pieces = (this.stamped(rows) for _, rows in in_pieces(closed.whole(), closed.read))
    append_pieces(aggregates.location, pieces, this.app_id(aggregates), this.number)
    crash.point(crash.Point.AGGREGATES_WRITTEN)
    if any(group.vector for group in groups):
        made = map(this.stamped, _vectors(this, groups, closed))
        append_pieces(of_vectors.location, made, this.app_id(of_vectors), this.number)


def _vectors(this: MicroBatch, groups: Sequence[Group], closed: Windows) -> Iterator[pa.Table]:
    """At the ends of windows that closed now; earlier windows only fill them."""
    for entity, fill_seconds, alike in by_entity(groups):
        whole = replace(closed.whole(), entity=entity, fill_seconds=fill_seconds)
        for piece, rows in in_pieces(whole, partial(_with_earlier, this, alike, closed)):
            for block in in_blocks(rows, alike, this.lake.conf.metrics):
                yield piece.ending_in(block)


def _with_earlier(this: MicroBatch, groups: Sequence[Group], closed: Windows, piece: Piece, limits: Limits | None) -> pa.Table | None:
    """Windows of a piece, and those before it that its vectors may be filled from, in the newest revision; None where they do not fit."""
    in_reach = piece.back()
    now = closed.read(in_reach, limits)
    now = now and with_values(now, {"device_group": [group.name for group in groups]})
    if not now or not piece.fill_seconds:
        return now
    # Without the rows of this batch, which a repeated batch finds in the table already.
    is_earlier = f"{in_reach.predicate()} and gold_batch < {this.number}"
    earlier = read(this.lake.gold(this.stream)[0], is_earlier, limits, {"device_group": now["device_group"].unique().to_pylist()})
    if not earlier:
        return earlier if earlier is None else now
    return revisions.latest(pa.concat_tables([this.stamped(now).select(earlier.column_names).cast(earlier.schema), earlier]), WINDOW_KEY)
