"""Rows that the target of a sink refuses for themselves, while it takes others: rows of ops.dead_rows. The sink goes on behind them.

A refused row is noted before the lake knows that the target has its batch, so no kill loses it; a repeat of the batch does not note it
again. It is tried again when it is amended, when all rows come again, and when somebody says so; a later row of the log then says that it
is over.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, TypeVar

import pyarrow as pa

from orchestration import crash
from orchestration.column_texts import json_rows
from orchestration.errors import TidemarkError, first_line
from orchestration.location import Location
from orchestration.storage.delta import version_of
from orchestration.storage.lake_layout import DEAD_ROWS as TABLE
from orchestration.storage.log import Log

AT_ONCE = 10_000
"""Refused rows that are kept in memory before they are noted."""
LONGEST_ROW = 1000
"""Bytes of a row without a key that stand for it."""
Made = TypeVar("Made")


class RowError(TidemarkError):
    """The target refuses some of these rows for what they hold."""


class State(StrEnum):
    """Whether the target lacks the row."""

    DEAD = "dead"
    """The target has refused the row, or its newest revision."""
    OVER = "over"
    """It was sent since, or the table does not have it any more."""


@dataclass(frozen=True)
class DeadRow:
    """Grain: one row that the target of one sink refused in one batch, or what became of it. The last row of a sink and a `row_key` counts.

    `row_key`: the primary key as JSON; of a mart, which has none, the beginning of the row.
    """

    sink: str
    table_name: str
    row_key: str
    reason: str
    state: str
    snapshot_id: int
    batch: str
    at: datetime


DEAD_ROWS = Log(TABLE, DeadRow, order="at", is_maintained=True)


class Refusal(NamedTuple):
    row_key: str
    reason: str


class Refused:
    """The rows of one batch that its target refuses. `key`: of its table. `record`: writes them to the log."""

    def __init__(self, key: Sequence[str] = (), record: Callable[[Sequence[Refusal]], None] = lambda _: None) -> None:
        self._key, self._record, self._waiting = key, record, list[Refusal]()
        self.keys, self.count = set[str](), 0

    def add(self, rows: pa.Table, reason: str) -> None:
        """Leave out rows, and go on with the others."""
        for row_key in row_keys(rows, self._key):
            self._waiting.append(Refusal(row_key, reason))
            self.keys.add(row_key)
            self.count += 1
        if len(self._waiting) >= AT_ONCE:
            self.note()

    def note(self) -> None:
        """Write down what was refused: before the target says that it has the batch."""
        if self._waiting:
            self._record(self._waiting)
            crash.point(crash.Point.DEAD_ROWS_NOTED)
        self._waiting = []


def sieve(rows: pa.Table, attempt: Callable[[pa.Table], Made], refused: Refused) -> Iterator[Made]:
    """Yield what `attempt` makes of these rows. Where it refuses some of them they are halved, down to the one that is refused.

    It refuses by a RowError, or by the error of a library that cannot write what a cell holds.
    """
    try:
        made = attempt(rows)
    except (RowError, ValueError, OverflowError) as error:
        if len(rows) == 1:
            refused.add(rows, first_line(str(error)))
            return
        for half in (rows.slice(0, len(rows) // 2), rows.slice(len(rows) // 2)):
            yield from sieve(half, attempt, refused)
    else:
        yield made


def row_keys(rows: pa.Table, key: Sequence[str]) -> list[str]:
    """Name each row by its key. Bytes that are no UTF-8 are backslash escapes, whatever type the column says."""
    columns = [rows[name] for name in key or rows.column_names]
    as_bytes = [column.cast(pa.binary()) if pa.types.is_string(column.type) else column for column in columns]
    texts = [text.decode() for text in json_rows(pa.table(as_bytes, [*(key or rows.column_names)]))]
    return texts if key else [text[:LONGEST_ROW] for text in texts]


def dead_rows(lake: Location, sink: str) -> dict[str, DeadRow]:
    """Return the rows that the target of a sink lacks, by their keys."""
    return {row_key: row for row_key, row in noted_rows(lake, sink).items() if row.state == State.DEAD}


def noted_rows(lake: Location, sink: str) -> dict[str, DeadRow]:
    """Return what became of each row that the target of a sink has ever refused, by its key."""
    return _noted_rows(lake, sink, version_of(DEAD_ROWS.path(lake)))


@lru_cache
def _noted_rows(lake: Location, sink: str, _: int) -> dict[str, DeadRow]:
    return DEAD_ROWS.last_of_each(lake, "row_key", [("sink", "=", sink)])
