"""Portals: statements that are ready to run, and how far their rows are sent."""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import duckdb
import pyarrow as pa

from orchestration.serving.postgres.databases import Databases
from orchestration.serving.postgres.datatypes import TEXT, DataType, modifier_of, type_of
from orchestration.serving.postgres.rows import encoded, framed, parts
from orchestration.serving.postgres.wire import PostgresError, Wire, text
from orchestration.serving.sql.sql_words import Word

ROWS_AT_ONCE, WIDE_ROWS_AT_ONCE = 10_000, 2_000
"""Rows of a batch: fewer where a value may be long, since a batch of 2 GiB fails."""
SETTLED_BYTES = 1 << 25
"""How much is read ahead of a portal when another query comes; if there is more, the portal keeps its database for itself."""
Batches = Iterator[pa.RecordBatch]


@dataclass(eq=False)
class Portal:
    """A statement with rows. `modifiers`: of the types, as RowDescription has them. `start`: takes for each column whether it is binary."""

    names: Sequence[str]
    types: Sequence[DataType]
    start: Callable[[Sequence[bool]], Batches]
    modifiers: Sequence[int] = ()
    tag: str = "SELECT"
    formats: Sequence[int] = ()
    sent: int = 0
    is_held: bool = False
    """A cursor WITH HOLD. It outlives its transaction if that is committed."""
    is_kept: bool = False
    connection: duckdb.DuckDBPyConnection | None = None
    """The one that DuckDB runs the query on."""
    batches: Batches | None = None
    rest: pa.RecordBatch | None = None
    cursor: "Portal | None" = None
    """Whose rows a FETCH takes."""
    _started_as: Sequence[bool] = field(default=())

    def is_binary(self) -> list[bool]:
        if len(self.formats) > 1 and len(self.formats) != len(self.types):
            raise PostgresError("08P01", f"{len(self.formats)} result formats for {len(self.types)} columns")
        formats = self.formats if len(self.formats) == len(self.types) else list(self.formats or [0]) * len(self.types)
        return [bool(form) for form in formats]

    def taken(self, most: int | None, is_binary: Sequence[bool]) -> Batches:
        """Take so many of the next rows; None: all."""
        if self.batches is None:
            self.batches, self._started_as = self.start(is_binary), is_binary
        if is_binary != self._started_as:
            raise PostgresError("0A000", "the rows of a cursor have the formats of its first FETCH")
        while most is None or most > 0:
            batch = self.rest if self.rest is not None else next(self.batches, None)
            self.rest = None
            if batch is None:
                return
            if most is not None and most < batch.num_rows:
                batch, self.rest = batch.slice(0, most), batch.slice(most)
            most = None if most is None else most - batch.num_rows
            yield batch

    def has_more(self) -> bool:
        if self.rest is None and self.batches is not None:
            self.rest = next(self.batches, None)
        return self.rest is not None

    def settle(self, databases: Databases) -> None:
        """Leave the connection to another query: DuckDB has one that runs a connection."""
        if self.batches is None:
            return
        ahead, count = [], 0
        for batch in self.batches:
            ahead.append(batch)
            count += batch.nbytes
            if count > SETTLED_BYTES:
                databases.leave()
                break
        self.batches = chain(ahead, self.batches)


@dataclass(eq=False)
class Command:
    """A statement without rows: `act` does it and returns its tag. None: an empty query."""

    act: Callable[[], str] | None


@dataclass
class Prepared:
    """A statement with parameters. `types`: their numbers, 0 where the client leaves it open."""

    query: str
    types: list[int]
    is_inferred: bool = False


def portal_of(relation: duckdb.DuckDBPyRelation, names: Sequence[str]) -> Portal:
    """Make a portal of a query that DuckDB has bound."""
    types = [type_of(column) for column in relation.types]
    count = ROWS_AT_ONCE if all(data_type.is_bounded for data_type in types) else WIDE_ROWS_AT_ONCE

    def start(is_binary: Sequence[bool]) -> Batches:
        columns = [
            (data_type.as_value if in_binary else data_type.as_text).format(f"#{number}")
            for number, (data_type, in_binary) in enumerate(zip(types, is_binary, strict=True), 1)
        ]
        return iter(relation.project(", ".join(columns)).to_arrow_reader(count))

    return Portal(names, types, start, [modifier_of(column) for column in relation.types])


def portal_of_texts(columns: dict[str, list[str]], tag: str) -> Portal:
    """Make a portal of rows that are there already."""
    batch = pa.RecordBatch.from_pydict({name: pa.array(values, pa.string()) for name, values in columns.items()})
    return Portal([*columns], [TEXT] * len(columns), lambda is_binary: iter([batch]), tag=tag)


def describe(wire: Wire, portal: Portal) -> None:
    """Send the names and types of a portal's columns."""
    modifiers = portal.modifiers or [-1] * len(portal.types)
    columns = [
        text(name) + struct.pack("!ihihih", 0, 0, data_type.oid, data_type.size, modifier, in_binary)
        for name, data_type, modifier, in_binary in zip(portal.names, portal.types, modifiers, portal.is_binary(), strict=True)
    ]
    wire.write("T", struct.pack("!h", len(columns)), *columns)


def send(wire: Wire, portal: Portal, most: int) -> None:
    """Send so many rows, 0 for all, and whether there are more."""
    is_binary = portal.is_binary()
    for batch in portal.taken(most or None, is_binary):
        for part in parts(batch):
            columns = [
                encoded(column, data_type) if in_binary else column.cast(pa.binary())
                for column, data_type, in_binary in zip(part.columns, portal.types, is_binary, strict=True)
            ]
            wire.write_framed(framed(columns))
        portal.sent += batch.num_rows
    if most and portal.has_more():
        wire.write("s")
    else:
        wire.write("C", text(portal.tag if portal.tag == "SHOW" else f"{portal.tag} {portal.sent}"))


def fetched(cursor: Portal, words: Sequence[Word], tag: str) -> Portal:
    """Make the portal of FETCH or MOVE. `words`: those after it."""
    lower = [word.text.lower() for word in words]
    if {"backward", "prior", "first", "last", "absolute", "-"} & {*lower[:-1]}:
        raise PostgresError("55000", "cursor can only scan forward")
    number = next((int(word) for word in lower[:-1] if word.isdigit()), None)
    most = None if "all" in lower[:-1] else 1 if number is None else number
    return Portal(cursor.names, cursor.types, lambda is_binary: cursor.taken(most, is_binary), cursor.modifiers, tag, cursor=cursor)


def moved(cursor: Portal, words: Sequence[Word]) -> str:
    """Pass over rows of a cursor."""
    passed = fetched(cursor, words, "MOVE")
    return f"MOVE {sum(batch.num_rows for batch in passed.start(cursor._started_as or [False] * len(cursor.types)))}"
