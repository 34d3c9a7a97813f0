"""Windows of gold, handed over from Spark and read from tables piece by piece, so that each piece fits in memory.

A piece is a part of a group: entities by a hash of their names, or a range of time. What does not fit is halved. Nearly always the whole
group is one piece, and all groups of a stream are handed over at once.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from hashlib import md5
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gold.spec import Group
from orchestration.storage.delta import ask, open_table
from orchestration.storage.tables import MAX_ARROW_ROWS, Table

HASHES = 256
"""By the first byte of an MD5, which Spark, delta-rs and Python compute alike."""
Rows = TypeVar("Rows")


@dataclass(frozen=True)
class Limits:
    """Of a piece. `rows`: some 500 bytes each for a moment (measured).

    `bytes`: of rows read from a table; of the names of devices in rows from Spark, which makes an error of a result larger than 1 GiB.
    """

    rows: int = 1_000_000
    bytes: int = 256 * 1024 * 1024


LIMITS = Limits()
_MANY = threading.Lock()


@dataclass(frozen=True)
class ClosedWindows:
    """How many windows of a group a DataFrame holds, and their first and last end, in seconds since 1970.

    `name_bytes`: of the names of their devices, which may be of any length.
    """

    group: Group
    count: int
    name_bytes: int
    first_end: int
    last_end: int

    @property
    def are_few(self) -> bool:
        """Whether they are worth no job of Spark, and fit in a result of it."""
        return self.count <= MAX_ARROW_ROWS and self.name_bytes <= LIMITS.bytes


def measured(rows: DataFrame, groups: dict[str, Group]) -> list[ClosedWindows]:
    """Of windows with their `group`; those groups that have some, in the order of their names."""
    ends = (F.unix_seconds(end("window_end")) for end in (F.min, F.max))
    counts = rows.groupBy("group").agg(F.count("*"), F.sum(F.octet_length("device_id")), *ends).collect()
    return [ClosedWindows(groups[name], *counted) for name, *counted in sorted(counts)]


@dataclass(frozen=True)
class Piece:
    """Windows of a group: those that end from `first` to `last`, in seconds since 1970, of devices whose hash is from `low` to `high`.

    A vector of a group has features of many devices, so only time cuts its windows.
    """

    group: Group
    first: int
    last: int
    low: int = 0
    high: int = HASHES - 1

    @property
    def is_of_devices(self) -> bool:
        """Whether a device is an entity of its own."""
        return self.group.vector is None or self.group.vector.entity == "device"

    @property
    def is_of_all_devices(self) -> bool:
        """Whether only time cuts it."""
        return (self.low, self.high) == (0, HASHES - 1)

    def halves(self) -> "tuple[Piece, Piece] | None":
        """None where cutting would not help, and it is taken as it is: time is not cut finer than vectors reach back to be filled."""
        if self.is_of_devices and self.low < self.high:
            middle = (self.low + self.high) // 2
            return replace(self, high=middle), replace(self, low=middle + 1)
        if self.last - self.first > (self.group.vector.max_fill_seconds if self.group.vector else 0):
            middle = (self.first + self.last) // 2
            return replace(self, last=middle), replace(self, first=middle + 1)
        return None

    def back(self, seconds: int) -> "Piece":
        """With earlier windows, which may fill its vectors."""
        return replace(self, first=self.first - seconds)

    def of(self, rows: pa.Table) -> pa.Table:
        """Those of the rows of Arrow that are in it."""
        in_time = self.ending_in(rows)
        if self.is_of_all_devices:
            return in_time
        hashes = {name: md5(name.encode(), usedforsecurity=False).digest()[0] for name in in_time["device_id"].unique().to_pylist()}
        return _with_value(
            in_time, "device_id", pa.array([name for name, of in hashes.items() if self.low <= of <= self.high], pa.string())
        )

    def ending_in(self, rows: pa.Table) -> pa.Table:
        """Rows of Arrow in its range of time."""
        first, last = (pa.scalar(seconds * 1_000_000, pa.timestamp("us", "UTC")) for seconds in (self.first, self.last))
        return _where(rows, pc.and_(pc.greater_equal(rows["window_end"], first), pc.less_equal(rows["window_end"], last)))

    def predicate(self, entity: str = "device_id", instant: str = "to_timestamp_micros") -> str:
        """SQL that Spark and delta-rs understand alike, but for the name of the function that makes an `instant` of microseconds."""
        first, last = (f"{instant}({seconds * 1_000_000})" for seconds in (self.first, self.last))
        in_time = f"window_end between {first} and {last}"
        if self.is_of_all_devices:
            return in_time
        return f"{in_time} and substr(md5({entity}), 1, 2) between '{self.low:02x}' and '{self.high:02x}'"


def in_pieces(piece: Piece, read: Callable[[Piece, Limits | None], Rows | None]) -> Iterator[tuple[Piece, Rows]]:
    """What `read` gives of the piece, or of its halves where it says by None that the piece is larger than the limits."""
    halves = piece.halves()
    rows = read(piece, LIMITS if halves else None)
    if rows is not None:
        yield piece, rows
    else:
        for half in halves or ():
            yield from in_pieces(half, read)


@dataclass(frozen=True)
class Windows:
    """Windows of one group in Spark, as `measured`, among those of other groups; `in_memory` where they fitted in a hand-over."""

    measured: ClosedWindows
    rows: DataFrame
    in_memory: pa.Table | None

    @property
    def group(self) -> Group:
        return self.measured.group

    def whole(self) -> Piece:
        return Piece(self.group, self.measured.first_end, self.measured.last_end)

    def read(self, piece: Piece, limits: Limits | None) -> pa.Table | None:
        """Those of a piece, without `group`; None where they are more than the limits."""
        if self.in_memory is not None:
            return piece.of(self.in_memory)
        of_piece = self.rows.where(F.col("group") == self.group.name).where(piece.predicate(instant="timestamp_micros"))
        if limits is not None and not _fits(measured(of_piece, {self.group.name: self.group}), limits):
            return None
        return of_piece.drop("group").toArrow()


def in_turn(of_groups: Sequence[ClosedWindows]) -> AbstractContextManager[object]:
    """Inside, these windows may be handed over: where they are many, no other stream's are meanwhile, which would fill the memory."""
    return nullcontext() if _fits(of_groups, Limits(MAX_ARROW_ROWS)) else _MANY


def handed_over(rows: DataFrame, of_groups: Iterable[ClosedWindows]) -> Iterator[list[Windows]]:
    """Windows with their `group`, as many whole groups at once as fit; a group that does not is left to be read in pieces."""
    for pack in _packs(of_groups):
        if not _fits(pack, LIMITS):
            yield [Windows(pack[0], rows, None)]
            continue
        together = rows.where(F.col("group").isin([closed.group.name for closed in pack])).toArrow()
        of_group = (together.filter(pc.field("group") == closed.group.name).drop_columns("group") for closed in pack)
        yield [Windows(closed, rows, table) for closed, table in zip(pack, of_group, strict=True)]


def read(table: Table, predicate: str, limits: Limits | None, of: tuple[str, pa.Array] | None = None) -> pa.Table | None:
    """Rows of a table by a predicate of SQL, and by the values of a column, without Spark; None where they are more than the limits."""
    newest = open_table(table.location)
    schema, kept, count, size = pa.schema(newest.schema().to_arrow()), [], 0, 0
    for batch in ask(f"select * from history where {predicate}", {"history": newest}):
        rows = pa.Table.from_batches([batch]).cast(schema)
        kept.append(rows if of is None else _with_value(rows, *of))
        count, size = count + len(kept[-1]), size + kept[-1].nbytes
        if limits is not None and (count > limits.rows or size > limits.bytes):
            return None
    return pa.concat_tables([schema.empty_table(), *kept])


def _with_value(rows: pa.Table, column: str, values: pa.Array) -> pa.Table:
    return _where(rows, pc.is_in(rows[column], value_set=values))


def _where(rows: pa.Table, is_meant: pa.ChunkedArray) -> pa.Table:
    """Without a copy where all are meant, as they mostly are: vectors may be wide."""
    return rows if pc.all(is_meant, min_count=0).as_py() else rows.filter(is_meant)


def _packs(of_groups: Iterable[ClosedWindows]) -> Iterator[list[ClosedWindows]]:
    pack: list[ClosedWindows] = []
    for closed in of_groups:
        if pack and not _fits([*pack, closed], LIMITS):
            yield pack
            pack = []
        pack.append(closed)
    if pack:
        yield pack


def _fits(of_groups: Sequence[ClosedWindows], limits: Limits) -> bool:
    count, name_bytes = sum(closed.count for closed in of_groups), sum(closed.name_bytes for closed in of_groups)
    return count <= limits.rows and name_bytes <= limits.bytes
